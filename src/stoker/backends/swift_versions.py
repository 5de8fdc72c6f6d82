"""
Objects in an external Swift whose every version counts: signals, each of which overwrites the previous one.

The objects are in a separate container with an archive for former versions (``X-Versions-Location``). Swift names an
archived version after the object and the time of its PUT.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote

import structlog

from stoker.backends.result_polling import Result
from stoker.backends.service_client import check_status
from stoker.backends.swift import KEY_HEADER, SwiftDriver
from stoker.objects.versions import archive_prefix
from stoker.store.remote_objects import RemoteObject

_PLACE_HEADER = "X-Versions-Location"
_log = structlog.get_logger("stoker.backends")
#: Attempts to delete an object while clients still write to it.
_TRIES = 3


class SwiftVersionsDriver(SwiftDriver):
    """The driver for objects with versions."""

    suffix = "-signals"

    def prepare(self) -> None:
        """
        Create the container and its archive.

        If the Swift does not support versions, the driver logs a warning: only the latest version is found.
        """
        check_status(self._client.send_request("PUT", f"/{self._archive}"), 201, 202)
        said = {KEY_HEADER: self._key, _PLACE_HEADER: self._archive}
        answer = self._client.send_request("PUT", f"/{self._container}", headers=said)
        if answer.status_code == 412:
            super().prepare()
        else:
            check_status(answer, 201, 202)
        if _PLACE_HEADER not in self._client.send_request("HEAD", f"/{self._container}").headers:
            _log.warning("swift.versions_unavailable", remedy="allow_versioned_writes = true")

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return all versions that are not stored yet, in the order of their PUT."""
        known_stamps = set((remote_object.last_result or "").split())
        found: dict[str, Result] = {}
        # The current version first: if it is overwritten meanwhile, it appears in the archive.
        now = self._client.send_request("HEAD", self._path(remote_object))
        if now.status_code != 404:
            check_status(now, 200)
            if now.headers.get("X-Timestamp", "") not in known_stamps:
                self._take(found, self._read(self._path(remote_object)))
        for name in self._list_archive(remote_object.name):
            stamp = name.rpartition("/")[2]
            if stamp not in known_stamps and stamp not in found:
                read = self._read(f"/{self._archive}/{quote(name)}")
                self._take(found, read and Result(stamp, read.data))
        return [found[stamp] for stamp in sorted(found)]

    def discard(self, name: str) -> None:
        """Delete the archive before the object, because Swift restores a deleted object from its archive."""
        for _ in range(_TRIES):
            archived = self._list_archive(name)
            for each in archived:
                check_status(self._client.send_request("DELETE", f"/{self._archive}/{quote(each)}"), 204, 404)
            super().discard(name)
            if not archived:
                return

    def names(self) -> Iterator[list[str]]:
        known = set[str]()
        for names in super().names():
            known.update(names)
            yield names
        for names in self._list(self._archive):
            found = {name[3:].rpartition("/")[0] for name in names} - known
            known |= found
            yield sorted(found)

    @property
    def _archive(self) -> str:
        return f"{self._container}-versions"

    def _list_archive(self, name: str) -> list[str]:
        return [each for names in self._list(self._archive, archive_prefix(name)) for each in names]

    def _take(self, found: dict[str, Result], read: Result | None) -> None:
        if read is not None:
            found[read.mark] = read
