"""
Objects in a Swift of which every version counts: signals, each put over the one before.

They lie in a container of their own, which Swift keeps an archive for (``X-Versions-Location``): what was put before is
there, named after what it was and when it was put.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote

import structlog

from stoker.external.looking import Found
from stoker.external.peer import expect
from stoker.external.swift import KEY_HEADER, SwiftHand
from stoker.objects.versions import archive_prefix
from stoker.store.lodgings import Lodging

_PLACE_HEADER = "X-Versions-Location"
_log = structlog.get_logger("stoker.external")
#: How often it is looked whether somebody puts while it is all removed.
_TRIES = 3


class VersionsHand(SwiftHand):
    suffix = "-signals"

    def prepare(self) -> None:
        """Of a Swift that keeps no versions it is only said: what is put last is found there all the same."""
        expect(self._peer.ask("PUT", f"/{self._archive}"), 201, 202)
        said = {KEY_HEADER: self._key, _PLACE_HEADER: self._archive}
        answer = self._peer.ask("PUT", f"/{self._container}", headers=said)
        if answer.status_code == 412:
            super().prepare()
        else:
            expect(answer, 201, 202)
        if _PLACE_HEADER not in self._peer.ask("HEAD", f"/{self._container}").headers:
            _log.warning("this Swift keeps no versions: signals may be lost", remedy="allow_versioned_writes = true")

    def look(self, lodging: Lodging, since: datetime) -> list[Found]:
        """Whatever was put there and was not taken yet, in its order."""
        heard = set((lodging.heard or "").split())
        found: dict[str, Found] = {}
        # First what was put last: what takes its place meanwhile leaves it in the archive.
        now = self._peer.ask("HEAD", self._path(lodging))
        if now.status_code != 404:
            expect(now, 200)
            if now.headers.get("X-Timestamp", "") not in heard:
                self._take(found, self._read(self._path(lodging)))
        for name in self._archived(lodging.name):
            stamp = name.rpartition("/")[2]
            if stamp not in heard and stamp not in found:
                read = self._read(f"/{self._archive}/{quote(name)}")
                self._take(found, read and Found(stamp, read.data))
        return [found[stamp] for stamp in sorted(found)]

    def discard(self, name: str) -> None:
        """The archive first: what is deleted would be brought back from there."""
        for _ in range(_TRIES):
            archived = self._archived(name)
            for each in archived:
                expect(self._peer.ask("DELETE", f"/{self._archive}/{quote(each)}"), 204, 404)
            super().discard(name)
            if not archived:
                return

    def names(self) -> Iterator[list[str]]:
        known = set[str]()
        for names in super().names():
            known.update(names)
            yield names
        for names in self._listed(self._archive):
            found = {name[3:].rpartition("/")[0] for name in names} - known
            known |= found
            yield sorted(found)

    @property
    def _archive(self) -> str:
        return f"{self._container}-versions"

    def _archived(self, name: str) -> list[str]:
        return [each for names in self._listed(self._archive, archive_prefix(name)) for each in names]

    def _take(self, found: dict[str, Found], read: Found | None) -> None:
        if read is not None:
            found[read.mark] = read
