"""One process of a swarm."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

from bench.swarm.connection import Endpoint
from bench.swarm.enrollment import EnrollmentRefused, enroll_swarm
from bench.swarm.faults import Faults
from bench.swarm.statistics import Statistics
from bench.swarm.swarm import Swarm


@dataclass(frozen=True, slots=True)
class Share:
    """The agents of one process: their names with their keys (None: to be enrolled with ``token``)."""

    url: str
    ca_file: str | None
    token: str
    keys: Mapping[str, str | None]
    first_index: int
    faults: Faults
    start_within: float
    #: Seconds between two reports.
    interval: float


def run_share(share: Share, pipe: Pipe) -> None:
    """
    Enroll the agents that have no key, run all, and send reports: ``statistics`` since the last report,
    ``polling``, and at first ``keys`` by name. A text is sent instead if the swarm cannot run.
    """
    endpoint, statistics = Endpoint.parse(share.url, share.ca_file), Statistics()
    missing = [name for name, key in share.keys.items() if key is None]
    try:
        enrolled = asyncio.run(enroll_swarm(endpoint, share.token, missing, statistics)) if missing else {}
    except EnrollmentRefused as refusal:
        pipe.send(str(refusal))
        return
    except (OSError, EOFError) as error:
        pipe.send(f"{share.url} does not answer: {error}")
        return
    keys = {name: key or enrolled[name] for name, key in share.keys.items()}
    swarm = Swarm(
        endpoint, list(keys.values()), share.faults, share.start_within, share.first_index, statistics=statistics
    )
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):  # the parent has ended
        asyncio.run(_report(swarm, share, keys, pipe))


async def _report(swarm: Swarm, share: Share, keys: Mapping[str, str], pipe: Pipe) -> None:
    async with swarm.agents():
        while True:
            await asyncio.sleep(share.interval)
            pipe.send({"statistics": swarm.take_statistics(), "polling": swarm.polling, "keys": keys})
            keys = {}
