"""Files that agents download through the relay, cached on disk by their SHA-256."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from stoker_relay.centre import Answer, CentreAway

#: Number of files that stay; those that were not used for the longest time are removed.
_MOST_FILES = 256
_DIGEST = re.compile("[0-9a-f]{64}")

#: Sends the request with additional headers.
Fetch = Callable[[Mapping[str, str]], Awaitable[Answer]]


class Downloads:
    """The cache in ``folder``. The central Stoker confirms each use by a conditional request while it is reachable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def get(self, name: str, fetch: Fetch, *, may_use_cached: bool) -> Answer:
        """
        Return the file ``name``: its newest version, or the cached one if the central Stoker is away.

        ``may_use_cached`` states whether the caller may have the cached one without a confirmation. Raises CentreAway.
        """
        if self._read(name) is None:
            # The first download of a file is made once, however many agents ask for it.
            async with self._locks.setdefault(name, asyncio.Lock()):
                if self._read(name) is None:
                    return self._store(name, await fetch({}))
        cached = self._read(name)
        headers = {} if cached is None else {"If-None-Match": cached.headers["etag"]}
        try:
            answer = await fetch(headers)
        except CentreAway:
            if cached is not None and may_use_cached:
                return cached
            raise
        if answer.status == 304 and cached is not None:
            return cached
        return self._store(name, answer)

    def _read(self, name: str) -> Answer | None:
        """Return the cached file, or None if there is none, or it was altered."""
        try:
            digest, _, media_type = self._folder.joinpath(f"{name}.name").read_text().partition("\n")
            path = self._folder / digest
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        if hashlib.sha256(content).hexdigest() != digest:
            return None
        return Answer(200, {"etag": f'"{digest}"', "content-type": media_type}, content)

    def _store(self, name: str, answer: Answer) -> Answer:
        """Cache a complete answer, whose ETag is the content's digest. Return the answer."""
        digest = answer.headers.get("etag", "").strip('"')
        is_whole = answer.status == 200 and _DIGEST.fullmatch(digest) is not None
        if is_whole and hashlib.sha256(answer.body).hexdigest() == digest:
            self._write(digest, answer.body)
            self._write(f"{name}.name", f"{digest}\n{answer.headers.get('content-type', '')}".encode())
            self._clean()
        return answer

    def _write(self, name: str, content: bytes) -> None:
        """Write a file atomically. A file that is lost in a crash is downloaded again."""
        handle, temporary = tempfile.mkstemp(dir=self._folder)
        with open(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(self._folder / name)

    def _clean(self) -> None:
        files = [path for path in self._folder.iterdir() if _DIGEST.fullmatch(path.name)]
        files.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[_MOST_FILES:]:
            path.unlink(missing_ok=True)
