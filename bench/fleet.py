"""Many simulated agents in one process: each is enrolled, keeps its poll open, and reports each run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Seconds before a reconnect.
_PAUSE = 0.2
_RESULT = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0}
_LOST = (OSError, asyncio.IncompleteReadError, ValueError)


@dataclass
class Fleet:
    """
    Simulated agents.

    ``keys`` are the keys of enrolled servers. ``begun`` counts by config id how often an agent began the run, as in the
    agent's memory.
    """

    host: str
    port: int
    keys: Mapping[str, str]
    #: Duration of each run in seconds.
    takes: float = 0.0
    begun: Counter[str] = field(default_factory=Counter)
    #: Start times by config id.
    at: dict[str, float] = field(default_factory=dict)
    polling: int = 0
    running: int = 0
    most_running: int = 0

    async def run(self, until: Callable[[], bool], limit: float = 300) -> None:
        """Run all agents until ``until`` returns true. Raises TimeoutError after ``limit`` seconds."""
        agents = [asyncio.create_task(_Agent(self, key).run()) for key in self.keys.values()]
        try:
            async with asyncio.timeout(limit):
                while not await asyncio.to_thread(until):
                    await asyncio.sleep(0.1)
        finally:
            for each in agents:
                each.cancel()
            await asyncio.gather(*agents, return_exceptions=True)


class _Agent:
    def __init__(self, fleet: Fleet, key: str) -> None:
        self._fleet = fleet
        self._key = key
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._etag: str | None = None
        #: Whether each begun run was reported, as on a real agent's disk.
        self._known: dict[str, bool] = {}

    async def run(self) -> None:
        try:
            while True:
                try:
                    await self._turn()
                except _LOST:
                    self._close()
                    await asyncio.sleep(_PAUSE)
        finally:
            self._close()

    async def _turn(self) -> None:
        headers = {"If-None-Match": self._etag} if self._etag else {}
        self._fleet.polling += 1
        try:
            status, said, body = await self._ask("GET", "/agent/v1/document?wait=50", b"", headers)
        finally:
            self._fleet.polling -= 1
        if status == 304:
            return
        if status != 200:
            raise OSError(f"{status}")
        for entry in json.loads(body)["deployments"]:
            await self._do(entry["id"])
        self._etag = said["etag"]

    async def _do(self, config_id: str) -> None:
        fleet = self._fleet
        if config_id not in self._known:
            self._known[config_id] = False
            fleet.begun[config_id] += 1
            fleet.at[config_id] = time.time()
            fleet.running += 1
            fleet.most_running = max(fleet.most_running, fleet.running)
            await asyncio.sleep(fleet.takes)
            fleet.running -= 1
        if not self._known[config_id]:
            body = json.dumps(_RESULT).encode()
            status, _, _ = await self._ask("POST", f"/agent/v1/runs/{config_id}/signal", body, {})
            if status not in (200, 404):
                raise OSError(f"{status}")
            self._known[config_id] = True

    async def _ask(
        self, verb: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        if self._stream is None:
            self._stream = await asyncio.open_connection(self._fleet.host, self._fleet.port)
        reader, writer = self._stream
        sent = {
            "Host": self._fleet.host,
            "Authorization": f"Bearer {self._key}",
            "Content-Length": str(len(body)),
            "Content-Type": "application/json",
            **headers,
        }
        head = f"{verb} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        writer.write(head.encode() + b"\r\n" + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        told = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        status = int(lines[0].split()[1])
        return status, told, await reader.readexactly(int(told.get("content-length") or 0))

    def _close(self) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream[1].close()
            self._stream = None


def enrolled(call: Callable[[str, str, Any], Any], names: list[str]) -> dict[str, dict[str, str]]:
    """
    Enroll servers. Return their ``id`` and ``key`` by name.

    ``call(verb, path, body)`` calls Heat's API, or the agent API for paths below /agent.
    """
    found = {}
    for name in names:
        made = call("POST", "/servers", {"name": name})
        trade = {"token": made["enrollment"]["token"], "instance": name, "hostname": name}
        found[name] = {"id": made["server"]["id"], "key": call("POST", "/agent/v1/enroll", trade)["key"]}
    return found
