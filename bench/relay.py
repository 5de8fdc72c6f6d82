"""
The same simulated agents directly at a Stoker, and behind a relay: connections, CPU and memory of both processes.

    python -m bench.relay --agents 2000
    python -m bench.relay --agents 2000 --workers 3 --postgresql postgresql://…
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence

from bench.api import Api
from bench.measure import cpu_seconds, pss_mb, tree, wait_until
from bench.scale.servers import create_servers
from bench.stoker import connect, running_stoker
from bench.swarm import Swarm
from bench.swarm.connection import Endpoint
from support.site_relay import site_relay
from support.sockets import count_connections

#: Seconds after the last first document until the swarm is at rest, and seconds of the measurement at rest.
_SETTLING, _AT_REST = 5.0, 30.0


def main() -> None:
    """Measure both ways, and print their figures."""
    parser = argparse.ArgumentParser("bench.relay", description=__doc__)
    parser.add_argument("--agents", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=1, help="processes of the Stoker; more than one need PostgreSQL")
    parser.add_argument("--postgresql", metavar="URL", help="a server on which a database may be created")
    options = parser.parse_args()
    with running_stoker(options.postgresql, "--workers", str(options.workers)) as stoker:
        api = connect(stoker)
        names = [f"bench-{number}" for number in range(options.agents)]
        keys = list(create_servers(stoker, api.project_id, names, {}).values())
        pids = {"stoker": [stoker.process.pid]}
        print("direct", json.dumps(_measure(api, keys, stoker.url, pids)), flush=True)
        with site_relay(stoker.folder / "site", stoker) as relay:
            pids["relay"] = [relay.process.pid]
            print("relay ", json.dumps(_measure(api, keys, relay.url, pids)), flush=True)


def _measure(api: Api, keys: Sequence[str], url: str, pids: Mapping[str, list[int]]) -> dict[str, float]:
    """Return the figures of a swarm at rest, and of a trigger to all of its agents."""
    swarm = Swarm(Endpoint.parse(url), keys)
    figures: dict[str, float] = {}

    def cpu() -> dict[str, float]:
        return {name: cpu_seconds(roots) for name, roots in pids.items()}

    def journey() -> None:
        wait_until(lambda: swarm.polling == len(keys))
        time.sleep(_SETTLING)
        before = cpu()
        time.sleep(_AT_REST)
        figures.update({f"{name}_rest_percent": 100 * (now - before[name]) / _AT_REST for name, now in cpu().items()})
        processes, port = tree(pids["stoker"]), int(api.base.port or 0)
        figures["stoker_connections"] = count_connections(processes, port)
        config_id = api.create_config()
        before, begun = cpu(), time.monotonic()
        trigger = api.start_trigger(config_id, servers=[key.partition(".")[0] for key in keys])
        wait_until(lambda: api.show_trigger(trigger, "?limit=1")["status"] != "IN_PROGRESS")
        figures["trigger_s"] = time.monotonic() - begun
        figures.update({f"{name}_ms_per_run": 1000 * (now - before[name]) / len(keys) for name, now in cpu().items()})
        figures.update({f"{name}_mb": pss_mb(roots) for name, roots in pids.items()})

    async def run() -> None:
        async with swarm.agents():
            await asyncio.to_thread(journey)

    asyncio.run(run())
    return {name: round(value, 2) for name, value in figures.items()}


if __name__ == "__main__":
    main()
