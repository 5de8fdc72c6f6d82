"""Start what is measured, run the cases, print a table and keep it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import cases, transports
from bench.api import Api
from bench.cases import Result, Target
from bench.measure import pss_mb, tree

RESULTS = Path(__file__).parent / "results"
#: A script that starts a real Heat and prints its OS_* variables and the pids to charge.
HEAT = Path(os.environ.get("STOKER_BENCH_HEAT", "../shared/bench/start-heat.sh"))
#: Which figure of a case is compared.
FIGURES = ("cpu_s_per_1000", "create_s", "p50_ms", "mb")


def main() -> None:
    arguments = argparse.ArgumentParser(prog="bench", description=__doc__)
    arguments.add_argument("--heat", action="store_true", help="measure a real Heat in the same run")
    arguments.add_argument("--scale", type=float, default=1.0, help="fewer repetitions, e.g. 0.1")
    arguments.add_argument("--only", default="", help="cases whose name contains this")
    arguments.add_argument("--database", help="database URL for Stoker (default: SQLite)")
    said = arguments.parse_args()
    found: dict[str, dict[str, Result]] = {}
    with stoker(said.database) as target:
        found["stoker"] = run(
            "stoker", target, {**cases.COMMON, **transports.COMMON, **cases.OURS, **transports.OURS}, said
        )
    if said.heat:
        if why := heat_is_missing():
            sys.exit(f"bench: {why}")
        with heat() as target:
            found["heat"] = run("heat", target, {**cases.COMMON, **transports.COMMON}, said)
    text = table(found)
    print(f"\n{text}")
    keep(found, text)


def run(label: str, target: Target, wanted: dict[str, Callable[[Target], Result]], said: Any) -> dict[str, Result]:
    target = Target(target.api, target.pids, said.scale)
    found: dict[str, Result] = {"at rest": {"mb": round(pss_mb(target.pids), 1), "processes": len(tree(target.pids))}}
    for name, case in wanted.items():
        if said.only not in name:
            continue
        try:
            found[name] = case(target)
        except Exception as error:
            print(f"{label:7} {name:45} failed: {error}", flush=True)
            continue
        print(f"{label:7} {name:45} {json.dumps(found[name])}", flush=True)
    found["at the end"] = {"mb": round(pss_mb(target.pids), 1)}
    return found


@contextmanager
def stoker(database: str | None) -> Iterator[Target]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
        command = [sys.executable, "-m", "stoker_client.cli.main", "serve", "--port", str(port), "--state-dir", folder]
        command += ["--local-servers", "--no-clouds-yaml", *(["--database", database] if database else [])]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            until_healthy(f"http://127.0.0.1:{port}/healthz")
            exports = subprocess.run(
                [sys.executable, "-m", "stoker_client.cli.main", "env", "--state-dir", folder],
                check=True,
                capture_output=True,
                text=True,
            )
            yield Target(Api(variables(exports.stdout)), (process.pid,))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


@contextmanager
def heat() -> Iterator[Target]:
    started = subprocess.run(["bash", str(HEAT)], check=True, capture_output=True, text=True)
    pids = next(line for line in started.stdout.splitlines() if line.startswith("pids:"))
    mine = tuple(int(pid) for pid in pids.split(":")[1].split(","))
    try:
        yield Target(Api(variables(started.stdout)), mine)
    finally:
        for pid in mine[:-2]:  # the last two are the database and the message broker, which were there before
            os.kill(pid, signal.SIGTERM)


def heat_is_missing() -> str | None:
    if not HEAT.exists():
        return f"{HEAT} is not there: set STOKER_BENCH_HEAT to a script that starts Heat"
    for name, port in (("MariaDB", 3306), ("RabbitMQ", 5672)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return f"Heat needs {name} on 127.0.0.1:{port}, and nothing answers there"
    return None


def until_healthy(url: str, limit: float = 30) -> None:
    until = time.monotonic() + limit
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def variables(exports: str) -> dict[str, str]:
    words = [word for line in exports.splitlines() if line.startswith("export ") for word in line.split()[1:]]
    return {name: value.strip("'\"") for name, _, value in (word.partition("=") for word in words)}


def table(found: dict[str, dict[str, Result]]) -> str:
    """Markdown: a row a case, with ratios where two were measured."""
    both = "heat" in found
    lines = ["| case | figure | Stoker |" + (" Heat | ratio |" if both else "")]
    lines.append("|---|---|---|" + ("---|---|" if both else ""))
    for name, ours in found["stoker"].items():
        theirs = found.get("heat", {}).get(name, {})
        for figure, value in ours.items():
            row = f"| {name} | {figure} | {value:g} |"
            if both:
                other = theirs.get(figure)
                compared = figure in FIGURES or figure.endswith("_s")
                ratio = f"{other / value:.0f}" if other and value and compared else ""
                row += f" {'' if other is None else f'{other:g}'} | {ratio} |"
            lines.append(row)
    return "\n".join(lines)


def keep(found: dict[str, dict[str, Result]], text: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    name = time.strftime("%Y-%m-%d-%H%M%S") + ("-vs-heat" if "heat" in found else "")
    facts = {
        "when": time.strftime("%F %T %z"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "load_average": os.getloadavg(),
        "cases": found,
    }
    RESULTS.joinpath(f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    RESULTS.joinpath(f"{name}.md").write_text(text + "\n")
    print(f"\nkept as {RESULTS}/{name}.md and .json")


if __name__ == "__main__":
    main()
