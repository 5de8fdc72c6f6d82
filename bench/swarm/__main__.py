"""
Run a swarm against a Stoker, to size a site.

Create a token for the agents, start the swarm, then deploy to its servers (label ``swarm=1``) from another terminal:

    stoker server enroll --many --limit 5000 --label swarm=1 -o value -c token > token
    python -m bench.swarm --url http://127.0.0.1:8004 --token-file token --agents 5000 --keys keys.json
    stoker run --label swarm=1 -- true

The simulated agents run nothing: a run takes ``--duration`` seconds on average and succeeds, but for ``--failure``. The
report shows how many agents have an open poll, the counts, and percentiles of durations in milliseconds: since the
start, and of the last interval. ``python -m bench.scale`` measures a Stoker of its own while nothing changes, while it
restarts, and while one of its workers is killed.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

from bench.swarm.connection import Endpoint
from bench.swarm.enrollment import load_keys, save_keys
from bench.swarm.processes import Share, SwarmFailed, SwarmProcesses
from bench.swarm.statistics import Statistics


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    args = _parse(arguments)
    try:
        Endpoint.parse(args.url, args.ca_file)
        shares = _shares(args)
    except (OSError, ValueError) as error:
        print(f"swarm: {error}", file=sys.stderr)
        return 2
    try:
        with SwarmProcesses.running(shares) as swarm:
            _watch(args, swarm)
    except SwarmFailed as failure:
        print(f"swarm: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _watch(args: argparse.Namespace, swarm: SwarmProcesses) -> None:
    """Print a report every ``--interval`` seconds, until the time is over. Raises SwarmFailed."""
    begun = time.monotonic()
    total = Statistics()
    while True:
        report = swarm.report()
        total.add(report.statistics)
        if args.keys:
            save_keys(args.keys, swarm.keys)
        elapsed = time.monotonic() - begun
        line = {"seconds": round(elapsed, 1), "polling": report.polling, **total.report()}
        print(json.dumps({**line, "interval": report.statistics.report()}), flush=True)
        if elapsed >= args.seconds:
            return


def _shares(args: argparse.Namespace) -> list[Share]:
    """Return the part of each process. Raises OSError if a file cannot be read, ValueError without keys and token."""
    keys = load_keys(args.keys) if args.keys else {}
    token = args.token_file.read_text().strip() if args.token_file else ""
    names = [f"{args.name}-{number}" for number in range(args.agents)]
    if not token and any(name not in keys for name in names):
        raise ValueError("the agents have no keys: name the file of an enrollment token with --token-file")
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if args.agents // args.processes + 50 > files:
        raise ValueError(f"a process may open {files} files: raise the limit (ulimit -n), or use more --processes")
    return [
        Share(
            url=args.url,
            ca_file=args.ca_file,
            token=token,
            keys={name: keys.get(name) for name in names[first :: args.processes]},
            first_index=first * args.agents // args.processes,
            start_within=args.start_within,
            interval=args.interval,
            duration=args.duration,
            failure=args.failure,
        )
        for first in range(args.processes)
    ]


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.swarm", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--url", required=True, help="the URL of the Stoker")
    add("--ca-file", help="certificates of authorities to trust")
    add("--token-file", type=Path, help="file of an enrollment token for many")
    add("--keys", type=Path, help="file for the agents' keys, so that the next swarm need not enroll")
    add("--name", default="swarm", help="beginning of the servers' names")
    add("--agents", type=int, default=1000)
    add("--processes", type=int, default=1)
    add("--seconds", type=float, default=float("inf"), help="how long the swarm runs; default: until Ctrl-C")
    add("--interval", type=float, default=5.0, help="seconds between two reports")
    add("--start-within", type=float, default=0.0, help="spread the first polls over this time in seconds")
    add("--duration", type=float, default=0.0, help="mean duration of a run in seconds")
    add("--failure", type=float, default=0.0, help="probability that a run fails")
    args = parser.parse_args(arguments)
    if args.agents < 1 or args.processes < 1:
        parser.error("--agents and --processes must be at least 1")
    return args


if __name__ == "__main__":
    sys.exit(main())
