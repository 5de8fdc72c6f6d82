"""Start what is measured, run the cases, print a table and keep it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import agents, cases, console, growth, salt, transports, triggers
from bench.cases import Result, Target
from bench.floor import floor
from bench.measure import pss_mb, tree
from bench.reference_heat import heat, heat_is_missing
from bench.stoker import connect, running_stoker
from support.server import LOCAL_SERVERS, Served

RESULTS = Path(__file__).parent / "results"
#: Figures with a ratio in the table, besides those that end with ``_s``.
FIGURES = ("cpu_s_per_1000", "create_s", "p50_ms", "mb")
#: Reasons for missing figures, by side and case.
Failures = dict[tuple[str, str], str]


def main() -> None:
    arguments = argparse.ArgumentParser(prog="bench", description=__doc__)
    arguments.add_argument(
        "what",
        nargs="?",
        choices=["growth", "console"],
        help="in place of the cases: how costs grow, or the console in Chromium",
    )
    arguments.add_argument("--heat", action="store_true", help="measure a real Heat in the same run")
    arguments.add_argument("--floor", action="store_true", help="the creations of `bench.floor` in the same run")
    arguments.add_argument(
        "--salt", action="store_true", help="a command on real agents, beside Salt, and nothing else"
    )
    arguments.add_argument("--scale", type=float, default=1.0, help="fewer repetitions, e.g. 0.1")
    arguments.add_argument("--only", action="append", help="cases whose name contains this, or another of these")
    arguments.add_argument("--postgresql", metavar="URL", help="a server on which a database may be created")
    said = arguments.parse_args()
    if said.heat and (why := heat_is_missing()):
        sys.exit(f"bench: {why}")
    found: dict[str, dict[str, Result]] = {}
    failed: Failures = {}
    if said.salt:
        run_beside_salt(said.postgresql)
        return
    if said.what == "console":
        with running_stoker(None, LOCAL_SERVERS) as site:
            console.run(replace(target_of(site), scale=said.scale), site.state_dir)
        return
    if said.what == "growth":
        with stoker(said.postgresql) as target:
            growth.run(Target(target.api, target.pids, said.scale), said.only)
        return
    with stoker(said.postgresql) as target:
        wanted = {**cases.COMMON, **transports.COMMON, **cases.OURS, **transports.OURS, **triggers.OURS, **agents.OURS}
        found["stoker"] = run("stoker", target, wanted, said, failed)
    peers = {
        "heat": (said.heat, heat(), {**cases.COMMON, **transports.COMMON}),
        "floor": (said.floor, floor(said.postgresql), cases.CREATIONS),
    }
    for label, (is_wanted, serving_peer, wanted) in peers.items():
        if is_wanted:
            with serving_peer as target:
                found[label] = run(label, target, wanted, said, failed)
    text = table(found, failed)
    print(f"\n{text}")
    keep("-vs-heat" if said.heat else "", "postgresql" if said.postgresql else "sqlite", text)


def run_beside_salt(postgresql: str | None) -> None:
    """Print the figures of a command on real agents, for Stoker and Salt."""
    if why := salt.salt_is_missing():
        sys.exit(f"bench: {why}")
    with stoker(postgresql) as target:
        ours = salt.stoker_run(target)
    theirs = salt.salt_run()
    print("| figure | Stoker | Salt |\n|---|---|---|")
    for figure, value in ours.items():
        print(f"| {figure} | {value:g} | {theirs[figure]:g} |")


def run(
    label: str, target: Target, wanted: dict[str, Callable[[Target], Result]], said: Any, failed: Failures
) -> dict[str, Result]:
    """Run the selected cases. Return their results by name, and add reasons for failures to ``failed``."""
    target = Target(target.api, target.pids, said.scale)
    found: dict[str, Result] = {"at rest": {"mb": round(pss_mb(target.pids), 1), "processes": len(tree(target.pids))}}
    for name, case in wanted.items():
        if said.only and not any(part in name for part in said.only):
            continue
        try:
            found[name] = case(target)
        except Exception as error:
            failed[label, name] = f"{type(error).__name__}: {error}"
            print(f"{label:7} {name:45} failed: {failed[label, name]}", flush=True)
            continue
        print(f"{label:7} {name:45} {json.dumps(found[name])}", flush=True)
    found["at the end"] = {"mb": round(pss_mb(target.pids), 1)}
    return found


@contextlib.contextmanager
def stoker(postgresql: str | None) -> Iterator[Target]:
    """Yield a new `stoker serve`."""
    with running_stoker(postgresql, LOCAL_SERVERS) as site:
        yield target_of(site)


def target_of(site: Served) -> Target:
    assert site.process is not None
    return Target(connect(site), (site.process.pid,))


def table(found: dict[str, dict[str, Result]], failed: Failures) -> str:
    """Return the results as Markdown: a row per figure, a ratio for each peer, and reasons for missing figures."""
    peers = [label for label in found if label != "stoker"]
    lines = ["| case | figure | Stoker |" + "".join(f" {label} | ratio |" for label in peers)]
    lines.append("|---|---|---|" + "---|---|" * len(peers))
    for name, ours in found["stoker"].items():
        for figure, value in ours.items():
            row = f"| {name} | {figure} | {value:g} |"
            for label in peers:
                other = found[label].get(name, {}).get(figure)
                compared = figure in FIGURES or figure.endswith("_s")
                ratio = f"{other / value:.3g}" if other and value and compared else ""
                absent = "-" if (label, name) in failed else ""
                row += f" {absent if other is None else f'{other:g}'} | {ratio} |"
            lines.append(row)
    lines += [f"\n{label}, {name}: no figure. {reason}" for (label, name), reason in failed.items()]
    return "\n".join(lines)


def keep(name: str, database: str, text: str) -> None:
    """Write the table, and on what it was measured, to a file below ``bench/results``."""
    RESULTS.mkdir(exist_ok=True)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {database}"
    load = " ".join(f"{average:.1f}" for average in os.getloadavg())
    file = RESULTS / f"{time.strftime('%Y-%m-%d-%H%M%S')}{name}.md"
    file.write_text(f"{time.strftime('%F %T %z')}: {machine}, load average {load}\n\n{text}\n")
    print(f"\nkept as {file}")


if __name__ == "__main__":
    main()
