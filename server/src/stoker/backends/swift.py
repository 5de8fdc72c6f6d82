"""
Objects in an external Swift: plain objects, and signals, every version of which counts.

All objects are in one container of Stoker's own, so an agent can write its result as soon as it has the URL; no object
has to be created first. The container carries the key for signed URLs, which derives from the site secret. Therefore
Stoker signs URLs without a request, and does not change the keys of the account. Signals are in a second container
with an archive for former versions (``X-Versions-Location``), because each signal overwrites the previous one.
"""

from __future__ import annotations

import email.utils
import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import structlog

from stoker.backends.result_polling import TOLERANCE, Result
from stoker.objects import tempurl
from stoker.service_client import ServiceClient, check_status, rejecting_malformed
from stoker.store.remote_objects import RemoteObject

#: Limit of a result in bytes.
_LONGEST = 16 * 1024 * 1024
_KEY_HEADER, _ARCHIVE_HEADER = "X-Container-Meta-Temp-Url-Key", "X-Versions-Location"
#: Attempts to delete an object while clients still write to it.
_TRIES = 3
_log = structlog.get_logger("stoker.backends")


class SwiftDriver:
    """
    The driver for objects in Swift.

    ``account_url``: the account's URL, which contains ``/v1/``. ``now`` returns the site's time.
    """

    #: Suffix of the container's name.
    suffix = ""

    def __init__(self, account_url: str, client: ServiceClient, secret: bytes, now: Callable[[], datetime]) -> None:
        host, _, account = account_url.rpartition("/v1/")
        self._root, self._account = host, f"/v1/{account}"
        key = hmac.digest(secret, b"stoker signed urls in swift", hashlib.sha256)
        self._key = key.hex()
        # Sites may share an account, so each site has its own container with its own key.
        self._container = f"stoker-{hashlib.sha256(key).hexdigest()[:12]}{self.suffix}"
        self._client = client
        self._now = now

    def url(self, name: str, verb: str) -> str:
        """Return a signed URL for an object of the container."""
        path = f"{self._account}/{self._container}/{name}"
        return tempurl.url_of(self._root, self._key, verb, path, tempurl.FOREVER)

    def prepare(self) -> None:
        """Create the container. Raises ServiceUnavailable and ServiceRejected."""
        check_status(self._client.send("PUT", f"/{self._container}", headers={_KEY_HEADER: self._key}), 201, 202)

    def apply(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        if remote_object.body is None:
            return {}
        content, headers = remote_object.body.encode(), {"Content-Type": "application/json"}
        answer = self._client.send("PUT", self._path(remote_object), content=content, headers=headers)
        if answer.status_code == 404:
            self.prepare()
            answer = self._client.send("PUT", self._path(remote_object), content=content, headers=headers)
        check_status(answer, 201, 202)
        return {}

    def remove(self, remote_object: RemoteObject) -> None:
        self.discard(remote_object.name)

    def discard(self, name: str) -> None:
        check_status(self._client.send("DELETE", f"/{self._container}/{quote(name)}"), 204, 404)

    def close(self) -> None:
        self._client.close()

    def names(self) -> Iterator[list[str]]:
        return self._list(self._container)

    def _list(self, container: str, prefix: str = "") -> Iterator[list[str]]:
        marker = ""
        while True:
            query = urlencode({"format": "json", "prefix": prefix, "marker": marker})
            answer = self._client.send("GET", f"/{container}?{query}")
            if answer.status_code == 404:
                return
            check_status(answer, 200)
            with rejecting_malformed():
                names = [entry["name"] for entry in answer.json()]
            if not names:
                return
            yield names
            marker = names[-1]

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return the result, if one was written since the run began and is not stored yet."""
        head = self._client.send("HEAD", self._path(remote_object))
        if head.status_code == 404 or head.headers.get("Content-Length") == "0":
            return []
        check_status(head, 200)
        if not _is_new(head.headers, remote_object.last_result, since, self._now()):
            return []
        stamp = head.headers.get("X-Timestamp", "")
        if not head.headers.get("Content-Length", "").isdigit() or int(head.headers["Content-Length"]) > _LONGEST:
            return [Result(stamp, None)]
        result = self._read(self._path(remote_object))
        return [result] if result and result.data else []  # another client may have emptied the object since the HEAD

    def acknowledge(self, remote_object: RemoteObject, results: list[Result]) -> None:
        """Keep the object: the agent overwrites it with the next result."""

    def _read(self, path: str) -> Result | None:
        """Return the object's content; None if the object does not exist."""
        answer = self._client.send("GET", path, headers={"Range": f"bytes=0-{_LONGEST}"})
        stamp = answer.headers.get("X-Timestamp", "")
        if answer.status_code == 404:
            return None
        if answer.status_code == 416:  # Swift's answer for a range of an empty object
            return Result(stamp, b"")
        check_status(answer, 200, 206)
        return Result(stamp, answer.content if len(answer.content) <= _LONGEST else None)

    def _path(self, remote_object: RemoteObject) -> str:
        return f"/{self._container}/{quote(remote_object.name)}"


class SwiftVersionsDriver(SwiftDriver):
    """
    The driver for objects with versions.

    Swift names an archived version after the object and the time of its PUT.
    """

    suffix = "-signals"

    def prepare(self) -> None:
        """
        Create the container and its archive.

        If the Swift does not support versions, the driver logs a warning: only the latest version is found.
        """
        check_status(self._client.send("PUT", f"/{self._archive}"), 201, 202)
        headers = {_KEY_HEADER: self._key, _ARCHIVE_HEADER: self._archive}
        answer = self._client.send("PUT", f"/{self._container}", headers=headers)
        if answer.status_code == 412:
            super().prepare()
        else:
            check_status(answer, 201, 202)
        if _ARCHIVE_HEADER not in self._client.send("HEAD", f"/{self._container}").headers:
            _log.warning("swift.versions_unavailable", remedy="allow_versioned_writes = true")

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return all versions that are not stored yet, in the order of their PUT."""
        known_stamps = set((remote_object.last_result or "").split())
        results: dict[str, Result] = {}
        # The current version first: if it is overwritten meanwhile, it appears in the archive.
        now = self._client.send("HEAD", self._path(remote_object))
        if now.status_code != 404:
            check_status(now, 200)
            if now.headers.get("X-Timestamp", "") not in known_stamps:
                self._take(results, self._read(self._path(remote_object)))
        for name in self._list_archive(remote_object.name):
            stamp = name.rpartition("/")[2]
            if stamp not in known_stamps and stamp not in results:
                read = self._read(f"/{self._archive}/{quote(name)}")
                self._take(results, read and Result(stamp, read.data))
        return [results[stamp] for stamp in sorted(results)]

    def discard(self, name: str) -> None:
        """Delete the archive before the object, because Swift restores a deleted object from its archive."""
        for _ in range(_TRIES):
            archived = self._list_archive(name)
            for version in archived:
                check_status(self._client.send("DELETE", f"/{self._archive}/{quote(version)}"), 204, 404)
            super().discard(name)
            if not archived:
                return

    def names(self) -> Iterator[list[str]]:
        yielded = set[str]()
        for names in super().names():
            yielded.update(names)
            yield names
        for names in self._list(self._archive):
            archived_only = {name[3:].rpartition("/")[0] for name in names} - yielded
            yielded |= archived_only
            yield sorted(archived_only)

    @property
    def _archive(self) -> str:
        return f"{self._container}-versions"

    def _list_archive(self, name: str) -> list[str]:
        prefix = f"{len(name.encode()):03x}{name}/"
        return [version for names in self._list(self._archive, prefix) for version in names]

    def _take(self, results: dict[str, Result], result: Result | None) -> None:
        if result is not None:
            results[result.mark] = result


def _is_new(headers: Mapping[str, str], last_stamp: str | None, since: datetime, now: datetime) -> bool:
    stamp = headers.get("X-Timestamp", "")
    if stamp == last_stamp:
        return False
    try:
        put = datetime.fromtimestamp(float(stamp), UTC)
        # X-Timestamp is by the service's clock; the Date header shows the difference from the site's.
        ahead = email.utils.parsedate_to_datetime(headers.get("Date", "")) - now
    except (ValueError, OverflowError):
        return True
    if abs(ahead) < TOLERANCE:
        ahead = timedelta(0)
    return put >= since + ahead - TOLERANCE
