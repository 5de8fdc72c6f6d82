"""Queues in a Zaqar, each named as the resource it is for."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from stoker.external.looking import TOLERANCE, Found
from stoker.external.peer import Peer, PeerRefused, expect, making_sense
from stoker.external.work import AGENT, Lodgings
from stoker.lodgings import DOCUMENT_TTL
from stoker.messaging.signed_urls import agents_until, said
from stoker.store import lodgings, rows
from stoker.store.lodgings import Lodging
from stoker.store.tx import Tx
from stoker.transports.base import Party, Signed

#: As long as a deployment may take; Zaqar gives a day to who says nothing.
_SIGNED_UNTIL = "2038-01-19T03:00:00"
#: Seconds that a subscription lasts: ten years.
_SUBSCRIBED = 315_360_000
#: Messages in one answer: as many as Zaqar gives.
_PAGE = 20
#: In a lodging's details: the signed URL that results are read by.
_READING = "signed"
#: An agent that may do this to a queue finds documents there, and leaves no results.
_FINDING = "GET"
#: Of a signed URL.
_SHARED = ("project", "paths", "methods", "expires", "signature")


@dataclass(frozen=True, slots=True)
class ZaqarQueues:
    """As transports use them: everything here happens inside a transaction."""

    lodgings: Lodgings
    url: str

    def open(self, tx: Tx, party: Party, *, keep_newest: bool) -> None:
        """A document's queue comes with its first message, which is posted anew long before its end."""
        self.lodgings.open(tx, lodgings.QUEUE, party.resource_id, party, bring=not keep_newest)

    def sign(self, tx: Tx, party: Party, method: str) -> bool:
        self.lodgings.open(tx, lodgings.QUEUE, party.resource_id, party, opens_to=method)
        found = lodgings.named(tx, lodgings.QUEUE, party.resource_id)
        return found is not None and AGENT in found.details

    def signed(self, tx: Tx, party: Party, method: str) -> Signed | None:
        found = lodgings.named(tx, lodgings.QUEUE, party.resource_id)
        made = found.details.get(AGENT) if found is not None else None
        if not made or made["methods"] != [method]:
            return None
        return Signed(
            url=self.url,
            project_id=made["project"],
            paths=",".join(made["paths"]),
            methods=method,
            expires=made["expires"],
            signature=made["signature"],
        )

    def replace(self, tx: Tx, party: Party, body: Any) -> None:
        self.lodgings.put(tx, lodgings.QUEUE, party.resource_id, party, rows.dump(body))

    def close(self, tx: Tx, party: Party) -> None:
        self.lodgings.close(tx, lodgings.QUEUE, party.resource_id)

    def expect(self, tx: Tx, party: Party, until: datetime | None = None) -> None:
        self.lodgings.listen(tx, lodgings.QUEUE, party.resource_id, until)


class ZaqarHand:
    """What jobs do there. ``caller``: the URL to be called for a resource's messages; None: not wanted."""

    def __init__(self, peer: Peer, secret: bytes, caller: Callable[[str], str] | None) -> None:
        self._peer = peer
        self._caller = caller
        client = hmac.digest(secret, b"stoker client id in zaqar", hashlib.sha256)
        self._said = {"Client-ID": str(UUID(bytes=client[:16])), "Content-Type": "application/json"}

    def prepare(self) -> None:
        """Queues are made one by one; it is only asked whether it is there."""
        with suppress(PeerRefused):
            self._peer.ask("GET", "/v2/ping", headers=self._said, signed=True)

    def bring(self, lodging: Lodging) -> Mapping[str, Any]:
        details = dict(lodging.details)
        if lodging.opens_to is not None:
            details[AGENT] = self._opened(lodging)
        if lodging.body is not None:
            expect(self._ask("POST", lodging, "/purge", {"resource_types": ["messages"]}), 204, 404)
            message = {"body": rows.load(lodging.body), "ttl": DOCUMENT_TTL}
            expect(self._ask("POST", lodging, "/messages", {"messages": [message]}), 201)
        elif lodging.opens_to != _FINDING and _READING not in details:
            details |= self._ready(lodging)
        return details

    def remove(self, lodging: Lodging) -> None:
        expect(self._ask("POST", lodging, "/purge", {"resource_types": ["messages", "subscriptions"]}), 204, 404)
        expect(self._ask("DELETE", lodging), 204, 404)

    def close(self) -> None:
        self._peer.close()

    def names(self) -> Iterator[list[str]]:
        """None: a project's queues may be anybody's."""
        return iter(())

    def discard(self, name: str) -> None:
        """There is nothing of that kind."""

    def look(self, lodging: Lodging, since: datetime) -> list[Found]:
        answer = self._messages("GET", lodging, f"?echo=true&limit={_PAGE}")
        if answer.status_code in (204, 404):
            return []
        expect(answer, 200)
        with making_sense():
            there = answer.json()["messages"]
            ids = [_id(each) for each in there]
            if lodging.heard in ids:  # not deleted yet, and all before it neither
                there = there[ids.index(lodging.heard) + 1 :]
            age = datetime.now(UTC) - since + TOLERANCE
            fresh = [each for each in there if timedelta(seconds=each["age"]) <= age]
            found = [Found(_id(each), rows.dump(each["body"]).encode()) for each in fresh]
        stale = [id for id in ids if id not in {each.mark for each in found}]
        if stale:  # of a run before; they would fill the page
            self._delete(lodging, stale)
        return found

    def taken(self, lodging: Lodging, found: list[Found]) -> None:
        self._delete(lodging, [each.mark for each in found])

    def _ready(self, lodging: Lodging) -> Mapping[str, Any]:
        """A queue that agents post results to: a URL to read it by, and a call for each message, where they may be."""
        expect(self._ask("PUT", lodging), 201, 204)
        signed = self._share(lodging, ["GET", "DELETE"], _SIGNED_UNTIL)
        calls = self._caller is not None and self._subscribe(lodging, self._caller(lodging.resource_id))
        return {_READING: signed, "calls": calls}

    def _opened(self, lodging: Lodging) -> Mapping[str, Any] | None:
        """The URL that the resource's agent has, or is to have from now on. None: this Zaqar signs none."""
        known: Mapping[str, Any] | None = lodging.details.get(AGENT)
        until = said(agents_until(lodging.resource_id, datetime.now(UTC)))
        if known and known["expires"] == until and known["methods"] == [lodging.opens_to]:
            return known
        return self._share(lodging, [str(lodging.opens_to)], until)

    def _share(self, lodging: Lodging, methods: Sequence[str], until: str) -> Mapping[str, Any] | None:
        """None: this Zaqar signs no URLs."""
        shared = self._ask("POST", lodging, "/share", {"paths": ["messages"], "methods": methods, "expires": until})
        with making_sense():
            return {name: shared.json()[name] for name in _SHARED} if shared.status_code == 200 else None

    def _subscribe(self, lodging: Lodging, url: str) -> bool:
        """Whether Zaqar is going to call; where it will not, there is looking."""
        wanted = {"subscriber": url, "ttl": _SUBSCRIBED, "options": {}}
        answer = self._ask("POST", lodging, "/subscriptions", wanted)
        if answer.status_code == 201:
            # Where Zaqar wants to be told that this is agreed to, it is; elsewhere it makes no difference.
            with making_sense():
                id = answer.json()["subscription_id"]
            self._ask("PUT", lodging, f"/subscriptions/{id}/confirm", {"confirmed": True})
        return answer.status_code in (201, 409)

    def _messages(self, verb: str, lodging: Lodging, query: str) -> Any:
        """By the signed URL, which needs no login; by a login where Zaqar signs none or takes it no more."""
        signed = lodging.details.get(_READING)
        if signed:
            headers = {
                **self._said,
                "X-Project-Id": signed["project"],
                "URL-Signature": signed["signature"],
                "URL-Expires": signed["expires"],
                "URL-Paths": ",".join(signed["paths"]),
                "URL-Methods": ",".join(signed["methods"]),
            }
            with suppress(PeerRefused):
                return self._peer.ask(verb, f"{_path(lodging)}/messages{query}", headers=headers, signed=True)
        return self._ask(verb, lodging, f"/messages{query}")

    def _delete(self, lodging: Lodging, ids: Sequence[str]) -> None:
        expect(self._messages("DELETE", lodging, f"?ids={','.join(ids)}"), 204, 404)

    def _ask(self, verb: str, lodging: Lodging, below: str = "", body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        return self._peer.ask(
            verb, _path(lodging) + below, project_id=lodging.project_id, content=content, headers=self._said
        )


def _path(lodging: Lodging) -> str:
    return f"/v2/queues/{lodging.name}"


def _id(message: Mapping[str, Any]) -> str:
    """Not every Zaqar says it on its own."""
    return str(message.get("id") or message["href"].rpartition("/")[2].partition("?")[0])
