"""Delivers spooled requests to the central Stoker, in order for each agent."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter

import structlog

from stoker_relay.centre import Centre, CentreAway
from stoker_relay.metrics import Metrics
from stoker_relay.spool import Entry, Spool

_log = structlog.get_logger("stoker_relay")

#: Agents whose requests are delivered at the same time.
_AT_ONCE = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
#: Seconds after which a request is sent again that Stoker could not process; they double, up to the second value.
_FIRST_RETRY, _LONGEST_RETRY = 30.0, 3600.0
#: How often a request is sent that Stoker cannot process: for eight hours.
_ATTEMPTS = 15
#: Seconds between two looks for requests that have waited too long.
_EXPIRE_SECONDS = 60.0


class Delivery:
    """Sends the entries of the spool. An entry is deleted when Stoker has accepted or refused it."""

    def __init__(self, centre: Centre, spool: Spool, metrics: Metrics, longest_seconds: float) -> None:
        """``longest_seconds``: running time of the relay after which a stored request is deleted."""
        self._centre = centre
        self._spool = spool
        self._metrics = metrics
        self._longest = longest_seconds
        self._failures = 0
        #: How often Stoker could not process a request, by its ``seq``.
        self._attempts: Counter[int] = Counter()
        #: Agent → the time of the next attempt (time.monotonic), after a failure of its request alone.
        self._later: dict[str, float] = {}

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            await self._spool.changed.wait()
            if not self._spool.agents():
                self._spool.changed.clear()
                continue
            if await self._deliver_all():
                self._failures = 0
                await asyncio.sleep(_FIRST_PAUSE)
            else:
                longest = min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
                self._failures += 1
                await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 — spreads the relays

    async def run_expiry(self) -> None:
        """Delete requests that have waited too long, until cancelled."""
        while True:
            count = await self._spool.expire(self._longest)
            if count:
                self._metrics.count_drop("expired", count)
                _log.error("requests.expired", count=count, days=self._longest / 86400)
            await asyncio.sleep(_EXPIRE_SECONDS)

    async def _deliver_all(self) -> bool:
        """Deliver what is due. Return False if the central Stoker is away."""
        now = time.monotonic()
        self._later = {agent: due for agent, due in self._later.items() if due > now}
        agents = [agent for agent in self._spool.agents() if agent not in self._later]
        if not agents:
            return True
        # One agent's requests show whether Stoker is back.
        if not await self._deliver(agents[0]):
            return False
        remaining = iter(agents[1:])

        async def deliver_some() -> bool:
            for agent in remaining:
                if not await self._deliver(agent):
                    return False
            return True

        return all(await asyncio.gather(*(deliver_some() for _ in range(_AT_ONCE))))

    async def _deliver(self, agent: str) -> bool:
        """Deliver the requests of one agent. Return False if the central Stoker is away."""
        while (entry := await self._spool.first(agent)) is not None:
            request = entry.request
            try:
                answer = await self._centre.send(request.verb, request.target, request.headers, request.body)
            except CentreAway:
                return False
            if (answer.status >= 500 or answer.status in (408, 429)) and self._postpone(entry, answer.status):
                return True
            if answer.status >= 400:
                reason = "failed" if answer.status >= 500 else "refused"
                self._metrics.count_drop(reason)
                _log.error("request.dropped", status=answer.status, request=_shown(entry), reason=reason)
            else:
                self._metrics.delivered.inc()
            await self._spool.remove(entry)
            self._attempts.pop(entry.seq, None)
        return True

    def _postpone(self, entry: Entry, status: int) -> bool:
        """Plan another attempt. Return False if there were enough."""
        self._attempts[entry.seq] += 1
        attempts = self._attempts[entry.seq]
        if attempts >= _ATTEMPTS:
            return False
        pause = min(_FIRST_RETRY * 2 ** (attempts - 1), _LONGEST_RETRY)
        self._later[entry.agent] = time.monotonic() + pause
        _log.warning("request.postponed", status=status, request=_shown(entry), retry_seconds=pause)
        return True


def _shown(entry: Entry) -> str:
    return f"{entry.request.verb} {entry.request.target.partition('?')[0]}"
