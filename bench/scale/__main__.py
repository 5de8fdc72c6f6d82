"""
Measure a Stoker with thousands of agents on this machine. Results are lines of JSON.

    python -m bench.scale idle --agents 10000                         # memory per poll, CPU while nothing changes
    python -m bench.scale idle --agents 50000 --workers 4 --postgresql postgresql://localhost/postgres
    python -m bench.scale restart --agents 10000 [--kill]             # time until all agents are back
    python -m bench.scale worker-loss --agents 3000 --workers 3 --postgresql postgresql://…
    python -m bench.scale outage --agents 3000 --workers 3 --postgresql postgresql://… --command "systemctl restart …"
    python -m bench.scale throughput --agents 2000 --workers 3 --postgresql postgresql://…
    python -m bench.scale rows --agents 1000000 --postgresql postgresql://…   # queries, without agents

Each command starts a Stoker and its agents, and creates a database on the PostgreSQL server, or uses SQLite. The agents
use CPU time of the same machine; the figures of Stoker and of the database do not include theirs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from bench.scale import cases
from bench.scale.rows import measure_rows
from bench.swarm.processes import SwarmFailed


def _measure_rows(options: cases.Options) -> Mapping[str, Any]:
    if not options.postgresql:
        raise ValueError("rows need --postgresql URL")
    return measure_rows(options.postgresql, options.agents)


_CASES: Mapping[str, Callable[[cases.Options], Mapping[str, Any]]] = {
    "idle": cases.measure_idle,
    "restart": cases.measure_restart,
    "worker-loss": cases.measure_worker_loss,
    "outage": cases.measure_outage,
    "throughput": cases.measure_throughput,
    "rows": _measure_rows,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one measurement. Returns the exit code."""
    parser = argparse.ArgumentParser(
        "bench.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=_CASES)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1, help="processes of the Stoker; more than one need PostgreSQL")
    parser.add_argument("--postgresql", metavar="URL", help="a server on which a database may be created")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each phase of the measurement")
    parser.add_argument("--kill", action="store_true", help="restart: kill the process instead of stopping it")
    parser.add_argument("--command", default="", help="outage: a shell command that takes a part of the site away")
    args = parser.parse_args(arguments)
    options = cases.Options(**{name: value for name, value in vars(args).items() if name != "case"})
    try:
        result = _CASES[args.case](options)
    except (SwarmFailed, TimeoutError, ValueError) as error:
        print(f"bench.scale: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"case": args.case, "agents": args.agents, "workers": args.workers, **result}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
