"""
Objects in a Swift.

All of them lie in one container that is Stoker's own, so that an agent can leave its result as soon as it knows the
URL: nothing has to be made there for it before. The container carries the key of the signed URLs, which derives from
the site's secret; keys that the account may have are left alone, and URLs can be made without asking anybody.
"""

from __future__ import annotations

import email.utils
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from stoker.external.looking import TOLERANCE, Found
from stoker.external.peer import Peer, expect, making_sense
from stoker.external.work import Lodgings
from stoker.objects import tempurl
from stoker.store import lodgings
from stoker.store.lodgings import Lodging
from stoker.store.tx import Tx
from stoker.transports.base import Party, Place

#: Bytes of a result.
_LONGEST = 16 * 1024 * 1024
KEY_HEADER = "X-Container-Meta-Temp-Url-Key"


@dataclass(frozen=True, slots=True)
class SwiftObjects:
    """As transports use them: everything here happens inside a transaction."""

    lodgings: Lodgings
    hand: SwiftHand
    #: Of what is there in versions.
    versions: SwiftHand

    def open(self, tx: Tx, party: Party, place: Place, owner: str) -> None:
        """Swift makes an object when it is put; it is only written down who will have one."""
        self.lodgings.open(tx, _kind(place), _name(place), party)

    def put(self, tx: Tx, party: Party, place: Place, data: bytes) -> None:
        self.lodgings.put(tx, _kind(place), _name(place), party, data.decode())

    def close(self, tx: Tx, party: Party, place: Place) -> None:
        self.lodgings.close(tx, _kind(place), _name(place))

    def expect(self, tx: Tx, party: Party, place: Place, until: datetime | None = None) -> None:
        self.lodgings.listen(tx, _kind(place), _name(place), until)

    def url(self, party: Party, place: Place, verb: str) -> str:
        return (self.versions if place.versions else self.hand).url(_name(place), verb)


class SwiftHand:
    """What jobs do there. ``account_url`` is the account's, with ``/v1/`` in it."""

    #: What the container's name ends with.
    suffix = ""

    def __init__(self, account_url: str, peer: Peer, secret: bytes) -> None:
        host, _, account = account_url.rpartition("/v1/")
        self._root, self._account = host, f"/v1/{account}"
        key = hmac.digest(secret, b"stoker signed urls in swift", hashlib.sha256)
        self._key = key.hex()
        # Two sites may share an account; each has a container, and a key, of its own.
        self._container = f"stoker-{hashlib.sha256(key).hexdigest()[:12]}{self.suffix}"
        self._peer = peer

    def url(self, name: str, verb: str) -> str:
        path = f"{self._account}/{self._container}/{name}"
        return tempurl.url_of(self._root, self._key, verb, path, tempurl.FOREVER)

    def prepare(self) -> None:
        """Have the container there. Raises PeerAway, PeerRefused."""
        expect(self._peer.ask("PUT", f"/{self._container}", headers={KEY_HEADER: self._key}), 201, 202)

    def bring(self, lodging: Lodging) -> Mapping[str, Any]:
        if lodging.body is None:
            return {}
        said = {"content": lodging.body.encode(), "headers": {"Content-Type": "application/json"}}
        answer = self._peer.ask("PUT", self._path(lodging), **said)  # type: ignore[arg-type]
        if answer.status_code == 404:
            self.prepare()
            answer = self._peer.ask("PUT", self._path(lodging), **said)  # type: ignore[arg-type]
        expect(answer, 201, 202)
        return {}

    def remove(self, lodging: Lodging) -> None:
        self.discard(lodging.name)

    def discard(self, name: str) -> None:
        expect(self._peer.ask("DELETE", f"/{self._container}/{quote(name)}"), 204, 404)

    def close(self) -> None:
        self._peer.close()

    def names(self) -> Iterator[list[str]]:
        return self._listed(self._container)

    def _listed(self, container: str, prefix: str = "") -> Iterator[list[str]]:
        marker = ""
        while True:
            query = urlencode({"format": "json", "prefix": prefix, "marker": marker})
            answer = self._peer.ask("GET", f"/{container}?{query}")
            if answer.status_code == 404:
                return
            expect(answer, 200)
            with making_sense():
                found = [each["name"] for each in answer.json()]
            if not found:
                return
            yield found
            marker = found[-1]

    def look(self, lodging: Lodging, since: datetime) -> list[Found]:
        """The result, when there is one that was put since the run began and was not taken yet."""
        head = self._peer.ask("HEAD", self._path(lodging))
        if head.status_code == 404 or head.headers.get("Content-Length") == "0":
            return []
        expect(head, 200)
        if not _is_new(head.headers, lodging.heard, since):
            return []
        stamp = head.headers.get("X-Timestamp", "")
        if not head.headers.get("Content-Length", "").isdigit() or int(head.headers["Content-Length"]) > _LONGEST:
            return [Found(stamp, None)]
        found = self._read(self._path(lodging))
        return [found] if found and found.data else []  # it may be emptied meanwhile

    def taken(self, lodging: Lodging, found: list[Found]) -> None:
        """It stays where it is: the agent puts the next one over it."""

    def _read(self, path: str) -> Found | None:
        """None: it is gone."""
        answer = self._peer.ask("GET", path, headers={"Range": f"bytes=0-{_LONGEST}"})
        stamp = answer.headers.get("X-Timestamp", "")
        if answer.status_code == 404:
            return None
        if answer.status_code == 416:  # of what is empty
            return Found(stamp, b"")
        expect(answer, 200, 206)
        return Found(stamp, answer.content if len(answer.content) <= _LONGEST else None)

    def _path(self, lodging: Lodging) -> str:
        return f"/{self._container}/{quote(lodging.name)}"


def _is_new(headers: Mapping[str, str], heard: str | None, since: datetime) -> bool:
    stamp = headers.get("X-Timestamp", "")
    if stamp == heard:
        return False
    try:
        put = datetime.fromtimestamp(float(stamp), UTC)
        # Its own clock says when that was, and what that clock says now.
        ahead = email.utils.parsedate_to_datetime(headers.get("Date", "")) - datetime.now(UTC)
    except (ValueError, OverflowError):
        return True
    if abs(ahead) < TOLERANCE:
        ahead = timedelta(0)
    return put >= since + ahead - TOLERANCE


def _kind(place: Place) -> str:
    return lodgings.VERSIONS if place.versions else lodgings.OBJECT


def _name(place: Place) -> str:
    return f"{place.container}/{place.name}"
