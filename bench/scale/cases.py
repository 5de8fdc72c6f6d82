"""The measurements: agents at rest, a restart, the loss of a worker or of a service, the throughput of processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.api import Api
from bench.measure import Usage, measure_usage, pss_mb, rss_mb, wait_until
from bench.scale.fleet import LABEL, Fleet, Load, connected_fleet
from bench.stoker import connect, list_sessions, list_workers, running_stoker
from bench.swarm.statistics import Statistics
from support.server import Served

#: Seconds for which an idle agent holds a poll.
_HEARTBEAT = 30.0
#: Seconds after which nothing is left of the start.
_SETTLING = 35.0


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure. ``postgresql`` None: SQLite. ``seconds``: of each phase. ``command``: of a shell."""

    agents: int
    workers: int = 1
    postgresql: str | None = None
    seconds: float = 60.0
    kill: bool = False
    command: str = ""


@contextlib.contextmanager
def _site(options: Options) -> Iterator[tuple[Served, Api]]:
    with running_stoker(options.postgresql, "--workers", str(options.workers)) as stoker:
        yield stoker, connect(stoker)


def measure_idle(options: Options) -> Mapping[str, Any]:
    """Measure memory and CPU of a Stoker whose agents all hold a poll while nothing changes."""
    with _site(options) as (stoker, api):
        empty = [rss_mb(pid) for pid in list_workers(stoker)]
        begun = time.monotonic()
        # As agents that were started at different times. Otherwise all polls would be renewed at the same moment.
        with connected_fleet(stoker, api, options.agents, start_within=_HEARTBEAT) as fleet:
            connected = time.monotonic() - begun
            time.sleep(_SETTLING)
            fleet.take()
            before = _usage(stoker)
            time.sleep(options.seconds)
            after = _usage(stoker)
            statistics = fleet.take()
            full = [rss_mb(pid) for pid in list_workers(stoker)]
            return {
                "connected_seconds": round(connected, 1),
                "rss_mb": [round(value) for value in full],
                "rss_mb_before": [round(value) for value in empty],
                "kb_per_agent": round((sum(full) - sum(empty)) * 1024 / options.agents, 1),
                **_shares_of_a_core(before, after),
                **statistics.report(),
            }


def measure_restart(options: Options) -> Mapping[str, Any]:
    """Restart a Stoker under a light load, and measure when all agents have an open poll again."""
    with _site(options) as (stoker, api), connected_fleet(stoker, api, options.agents) as fleet:
        fleet.take()
        with Load(stoker, size=10, pause=0.5) as load:
            time.sleep(5)
            stopped = time.monotonic()
            (stoker.kill9 if options.kill else stoker.stop)()
            down = time.monotonic()
            stoker.start()
            up = time.monotonic()
            before = _usage(stoker)
            wait_until(lambda: fleet.polling < options.agents // 10 or time.monotonic() > up + 5, "lost polls")
            fleet.wait_until_connected(120)
            back = time.monotonic()
            after = _usage(stoker)
            time.sleep(5)
        results = _check_runs(fleet, load)
        return {
            "stop_seconds": round(down - stopped, 1),
            "start_seconds": round(up - down, 1),
            "all_back_seconds_after_stop": round(back - stopped, 1),
            "all_back_seconds_after_start": round(back - up, 1),
            "stoker_cpu_seconds_until_back": round(after.stoker - before.stoker, 1),
            **results,
        }


def measure_worker_loss(options: Options) -> Mapping[str, Any]:
    """Kill one of several workers under load. Compare service times before and after it."""
    return _measure_fault(options, lambda stoker: os.kill(list_workers(stoker)[0], signal.SIGKILL))


def measure_outage(options: Options) -> Mapping[str, Any]:
    """Start a command that takes a part of the site away, under load. Compare service times before and after it."""
    with contextlib.ExitStack() as stack:
        return _measure_fault(
            options,
            lambda _: stack.enter_context(subprocess.Popen(options.command, shell=True, start_new_session=True)),
        )


def _measure_fault(options: Options, cause: Callable[[Served], object]) -> Mapping[str, Any]:
    phases: dict[str, Any] = {}
    with _site(options) as (stoker, api), connected_fleet(stoker, api, options.agents) as fleet:
        with Load(stoker, size=20, pause=0.2) as load:
            time.sleep(10)
            fleet.take()
            load.take()
            time.sleep(options.seconds)
            phases["before"] = _take(fleet, load)
            begun = time.monotonic()
            cause(stoker)
            wait_until(lambda: fleet.polling < options.agents * 0.95 or time.monotonic() > begun + 2, "lost polls")
            fleet.wait_until_connected(120)
            phases["seconds_until_all_polled_again"] = round(time.monotonic() - begun, 1)
            time.sleep(max(0.0, 10 - (time.monotonic() - begun)))
            phases["first_10_seconds_after"] = _take(fleet, load)
            time.sleep(options.seconds)
            phases["later"] = _take(fleet, load)
        return {**phases, **_check_runs(fleet, load)}


def measure_throughput(options: Options) -> Mapping[str, Any]:
    """Measure a trigger of all agents: wall time, and the CPU of Stoker and database for each run."""
    with _site(options) as (stoker, api), connected_fleet(stoker, api, options.agents) as fleet:
        config, rounds = api.create_config(), []
        for _ in range(3):
            time.sleep(10)
            fleet.take()
            before = _usage(stoker)
            show = partial(api.show_trigger, api.start_trigger(config, labels={LABEL: "1"}), "?targets=false")
            started = wait_until(lambda show=show: not show()["queued"], "starts of all runs", pause=0.25)
            wait_until(lambda show=show: show()["status"] != "IN_PROGRESS", "results of all agents", pause=0.25)
            fleet.wait_until_connected()  # the polls that find the documents empty belong to the runs
            figures = _round(options.agents, before, _usage(stoker), fleet.take())
            rounds.append({"started_seconds": round(started, 2), **figures})
        return {"rounds": rounds, "mb": round(pss_mb([_pid(stoker)]))}


def _round(agents: int, before: Usage, after: Usage, statistics: Statistics) -> Mapping[str, Any]:
    seconds = after.at - before.at
    used = after.stoker - before.stoker + after.database - before.database
    return {
        "seconds": round(seconds, 2),
        "runs_per_second": round(agents / seconds),
        "stoker_cpu_ms_per_run": round((after.stoker - before.stoker) / agents * 1000, 2),
        "database_cpu_ms_per_run": round((after.database - before.database) / agents * 1000, 2),
        "cores_used": round(used / seconds, 2),
        "errors": {name: count for name, count in statistics.counts.items() if name.startswith("error")},
    }


def _shares_of_a_core(before: Usage, after: Usage) -> dict[str, float]:
    """Return the percentage of one core that each side used between two moments."""
    seconds = after.at - before.at
    return {
        "stoker_core_percent": round((after.stoker - before.stoker) / seconds * 100, 2),
        "database_core_percent": round((after.database - before.database) / seconds * 100, 2),
    }


def _usage(stoker: Served) -> Usage:
    return measure_usage({_pid(stoker), *list_workers(stoker)}, list_sessions(stoker))


def _pid(stoker: Served) -> int:
    assert stoker.process is not None
    return stoker.process.pid


def _take(fleet: Fleet, load: Load) -> Mapping[str, Any]:
    statistics = fleet.take()
    statistics.add(load.take())
    return statistics.report()


def _check_runs(fleet: Fleet, load: Load) -> Mapping[str, Any]:
    """Wait for all runs of the load, and return what was lost, repeated, or met an error."""
    with contextlib.suppress(TimeoutError):  # the result says how many are missing
        wait_until(lambda: load.count_completed() >= load.runs, "runs of acknowledged triggers", 120)
    return {
        "requested_runs": load.runs,
        "lost_runs": load.runs - load.count_completed(),
        "refused_triggers": load.failures,
        **fleet.take().report(),
    }
