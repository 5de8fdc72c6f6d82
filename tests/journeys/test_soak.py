"""
Many deployments on one agent through faults of every kind: each config runs at most once, and every result arrives.

STOKER_TEST_SOAK is the number of deployments; `make soak` runs 2,000.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.agents import OwnAgent, own_agent
from support.clock import FakeTime
from support.databases import missing
from support.fault_site import Load
from support.faulty_line import FaultyLine, faulty_line
from support.server import Served, served
from support.slow_disk import slow_disk
from support.waiting import until

DEPLOYMENTS = int(os.environ.get("STOKER_TEST_SOAK", "50"))
#: Deployments that wait for the agent at a time.
BATCH = 25
#: The file system of the agent's state, which is full at times. Without a bound, 2,000 runs would exceed it.
STATE_MIB = 12
#: Reasons of failed runs. A full disk may also stop the script itself.
REASONS = ("Interrupted", "No space left", "non-zero status code", "could not be begun")

SCRIPT = """#!/bin/sh
echo "$me" >> {ran}
echo "output of $me"
printf "%s" "$me" > "$heat_outputs_path.copy"
"""


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small file system at ``folder``."""
    if os.geteuid() != 0:
        missing("only root can mount a file system")
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={STATE_MIB}m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Faults:
    """Causes one fault after the other, until ``stop``."""

    def __init__(self, stoker: Served, agent: OwnAgent, network: FaultyLine, clock: FakeTime) -> None:
        self._stoker, self._agent, self._network, self._clock = stoker, agent, network, clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.counts: Counter[str] = Counter()
        self.errors: list[BaseException] = []
        self._kinds: tuple[Callable[[], None], ...] = (
            *(self._kill_agent, self._kill_server, self._stop_server),
            *(self._cut_network, self._fill_disk, self._slow_down_disks, self._jump),
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(300)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            left: list[Callable[[], None]] = []
            while not self._stopping.wait(random.uniform(0.2, 1.5)):
                left = left or random.sample(self._kinds, len(self._kinds))  # also short runs have all kinds of faults
                fault = left.pop()
                self.counts[fault.__name__.lstrip("_")] += 1
                fault()
        except BaseException as error:
            self.errors.append(error)

    def _kill_agent(self) -> None:
        assert self._agent.process is not None
        self._agent.process.kill()
        self._agent.process.wait()
        self._agent.start()

    def _kill_server(self) -> None:
        self._stoker.kill9()
        self._stoker.restart()

    def _stop_server(self) -> None:
        self._stoker.stop()
        self._stoker.restart()

    def _cut_network(self) -> None:
        self._network.go()
        self._stopping.wait(random.uniform(0, 1))
        self._network.come()

    def _fill_disk(self) -> None:
        filler = self._agent.root / "state" / "filler"
        try:
            with filler.open("wb", buffering=0) as file:
                while file.write(b"x" * 65536) == 65536:
                    pass
        except OSError:
            pass
        self._stopping.wait(random.uniform(0.2, 2))
        filler.unlink(missing_ok=True)

    def _slow_down_disks(self) -> None:
        """Delay each fsync of the server's SQLite and of the agent."""
        assert self._agent.process is not None and self._stoker.process is not None
        with slow_disk([self._stoker.process.pid, self._agent.process.pid], 0.2):
            self._stopping.wait(random.uniform(0.2, 2))

    def _jump(self) -> None:
        seconds = random.choice((-86400 * 3, -3600, -30, 0, 30, 3600, 86400 * 3))
        self._clock.move(timedelta(seconds=seconds))


def create(load: Load) -> str:
    """Create a deployment and return its id, however often the server does not answer."""
    ids: list[str] = []
    until(lambda: bool(ids.extend(filter(None, [load.deploy()])) or ids), 240)
    return ids[0]


def show(load: Load, id: str) -> dict[str, Any]:
    return dict(load.call("GET", f"/software_deployments/{id}")["software_deployment"])


@pytest.mark.slow
@pytest.mark.timeout(300 + DEPLOYMENTS)
def test_no_fault_loses_or_repeats_a_run(tmp_path: Path) -> None:
    ran, clock = tmp_path / "ran", FakeTime(tmp_path)
    ran.touch()
    with (
        served(tmp_path) as stoker,
        faulty_line(stoker.port, loss=0.2) as network,
        own_agent(tmp_path / "agent") as agent,
        small_disk(agent.root / "state"),
    ):
        agent.environment = clock.variables
        agent.enroll(stoker, "soak", network.url)
        config = {
            "name": "soak",
            "group": "script",
            "config": SCRIPT.format(ran=ran),
            "inputs": [{"name": "me"}],
            "outputs": [{"name": "copy"}],
        }
        config_id = stoker.heat("POST", "/software_configs", config).body["software_config"]["id"]
        load = Load([stoker], config_id, [stoker.json("server", "show", "soak")["id"]], [])
        agent.start()
        faults = Faults(stoker, agent, network, clock)
        faults.start()
        ids: list[str] = []
        try:
            while len(ids) < DEPLOYMENTS:
                batch = [create(load) for _ in range(min(BATCH, DEPLOYMENTS - len(ids)))]
                ids += batch
                for id in batch:
                    until(
                        lambda id=id: show(load, id)["status"] != "IN_PROGRESS", 240, lambda id=id: str(show(load, id))
                    )
        finally:
            faults.stop()
        assert not faults.errors, faults.errors
        deployments = [show(load, id) for id in ids]
        files = [path for path in (agent.root / "state").rglob("*") if path.is_file()]
        print(dict(faults.counts), Counter(each["status_reason"][:80] for each in deployments), len(files))
        _check_runs(deployments, Counter(ran.read_text().split()))
        assert sum(path.stat().st_size for path in files) < STATE_MIB * 1024 * 1024 / 2


def _check_runs(deployments: list[dict[str, Any]], ran: Counter[str]) -> None:
    """Every deployment has ended: it ran once, or its reason says why it did not end well."""
    assert max(ran.values()) == 1, ran.most_common(3)
    for deployment in deployments:
        me = deployment["input_values"]["me"]
        if deployment["status"] == "COMPLETE":
            assert ran[me] == 1
            assert deployment["output_values"]["copy"] == me
            assert deployment["output_values"]["deploy_stdout"] == f"output of {me}\n"
        else:
            assert any(reason in deployment["status_reason"] for reason in REASONS), deployment
    assert sum(deployment["status"] == "COMPLETE" for deployment in deployments) > len(deployments) / 2
