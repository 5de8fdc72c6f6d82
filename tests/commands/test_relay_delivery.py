"""Stored requests of a relay that Stoker never accepts: they are dropped in the end, and the relay says so."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from stoker_relay import delivery as delivery_module
from stoker_relay.centre import Centre
from stoker_relay.database import Database
from stoker_relay.delivery import Delivery
from stoker_relay.metrics import Metrics
from stoker_relay.settings import RelaySettings
from stoker_relay.spool import Spool, SpooledRequest
from support.http_stub import Said, answering

KEY = f"{'0' * 36}.{'a' * 64}"


class Relay:
    """The parts of a relay that store and deliver, without its API."""

    def __init__(self, folder, url):
        settings = RelaySettings(centre=url, key=KEY, state_dir=folder)
        self.metrics = Metrics()
        self.database = Database(folder / "relay.db")
        self.centre = Centre(settings)
        self.spool = Spool(self.database, KEY, settings.spool_bytes, self.metrics)
        self.delivery = Delivery(self.centre, self.spool, self.metrics, 86400)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.centre.close()
        self.database.close()

    async def store(self, agent, name):
        await self.spool.append(agent, "result", SpooledRequest("POST", f"/agent/v1/runs/{name}/signal", {}, b"{}"))

    async def run_until_empty(self):
        task = asyncio.create_task(self.delivery.run())
        try:
            async with asyncio.timeout(60):
                while len(self.spool):
                    await asyncio.sleep(0.01)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def dropped(self, reason):
        return f'stoker_relay_spool_dropped_total{{reason="{reason}"}} 1.0' in self.metrics.render().decode()


@pytest.mark.parametrize("status, reason, times", [(404, "refused", 1), (500, "failed", 3)])
def test_a_request_that_stoker_never_accepts_is_dropped(tmp_path, monkeypatch, status, reason, times):
    monkeypatch.setattr(delivery_module, "_FIRST_RETRY", 0.01)
    monkeypatch.setattr(delivery_module, "_ATTEMPTS", 3)

    def answer(asked):
        return Said(status if "bad" in asked.path else 200, b"{}")

    async def journey(url):
        async with Relay(tmp_path, url) as relay:
            for agent, name in (("a", "bad"), ("a", "good"), ("b", "good")):
                await relay.store(agent, name)
            await relay.run_until_empty()
            assert relay.dropped(reason)

    with answering(answer) as server:
        asyncio.run(journey(server.url))
    paths = [asked.path for asked in server.asked]
    assert paths.count("/agent/v1/runs/bad/signal") == times
    assert paths.count("/agent/v1/runs/good/signal") == 2


def test_a_request_expires_by_the_running_time_of_the_relay(tmp_path, monkeypatch):
    """The computer's clock may jump, and time without a running relay does not count."""

    async def journey():
        async with Relay(tmp_path, "http://127.0.0.1:1") as relay:
            await relay.store("a", "old")
            relay.spool._started -= 86000  # as if the process had run for so long
            assert await relay.spool.expire(86400) == 0
        async with Relay(tmp_path, "http://127.0.0.1:1") as relay:
            await relay.store("a", "new")
            relay.spool._started -= 500
            assert await relay.spool.expire(86400) == 1
            assert len(relay.spool) == 1
            remaining = await relay.spool.first("a")
            assert remaining.request.target == "/agent/v1/runs/new/signal"

    asyncio.run(journey())
