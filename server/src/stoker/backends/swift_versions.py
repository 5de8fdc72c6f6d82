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
        headers = {KEY_HEADER: self._key, _PLACE_HEADER: self._archive}
        answer = self._client.send_request("PUT", f"/{self._container}", headers=headers)
        if answer.status_code == 412:
            super().prepare()
        else:
            check_status(answer, 201, 202)
        if _PLACE_HEADER not in self._client.send_request("HEAD", f"/{self._container}").headers:
            _log.warning("swift.versions_unavailable", remedy="allow_versioned_writes = true")

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return all versions that are not stored yet, in the order of their PUT."""
        known_stamps = set((remote_object.last_result or "").split())
        results: dict[str, Result] = {}
        # The current version first: if it is overwritten meanwhile, it appears in the archive.
        now = self._client.send_request("HEAD", self._path(remote_object))
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
                check_status(self._client.send_request("DELETE", f"/{self._archive}/{quote(version)}"), 204, 404)
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
