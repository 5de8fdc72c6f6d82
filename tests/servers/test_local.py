"""Local servers: real agent processes, found again, started again, and ended with all they started."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stoker.model.deployment import Settled
from stoker.model.server import ServerOwner
from stoker.servers.keys import Keys
from stoker.servers.local import LocalServers
from stoker.servers.local_agents import MARKER, RestartPauses, agent_of, marked
from stoker.store import servers
from stoker.store.open import Store
from stoker.store.tx import Tx, TxCallbacks, Wake
from stoker.work import Work
from support.tables import add_resource
from support.waiting import until
from support.work import count_jobs

pytestmark = pytest.mark.slow


@dataclass
class Place:
    """One run of the server program, as far as local servers go."""

    store: Store
    keys: Keys
    folder: Path
    url: str
    local: LocalServers = field(init=False)
    work: Work = field(init=False)
    started: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    past: list[LocalServers] = field(default_factory=list)

    def wake(self, _: Tx, id: str, wakes: Sequence[Wake]) -> None:
        """Note which servers have started, and why others have not."""
        for cause, _secrets in wakes:
            assert isinstance(cause, Settled)
            if cause.failure is None:
                self.started.append(id)
            else:
                self.failed.append((id, cause.failure))

    def begin(self) -> None:
        self.work = Work(self.store)
        self.local = LocalServers(
            self.store,
            self.work,
            self.keys,
            self.folder,
            self.url,
        )
        self.work.start()
        self.local.resume()

    def end(self, *, cleanly: bool = True) -> None:
        """Not cleanly: as with kill -9, nobody tells the agents."""
        if cleanly:
            self.local.shut_down()
        else:
            self.local._stopping = True
            self.local._agents._has_stopped = True
        self.work.stop()
        self.past.append(self.local)

    def bury(self) -> None:
        """Kill what is left, and ask for every child, so that none is left waiting for that."""
        for root in self.folder.glob("*"):
            for pid in marked(root.name):
                os.kill(pid, signal.SIGKILL)
        for local in self.past:
            for child in local._agents._children.values():
                child.wait(60)

    def add(self, id: str) -> None:
        add_resource(self.store, stack_id="s", resource_id=id)
        self.store.write(
            lambda tx: self.local.create(
                tx, server_id=id, project_id="p", name=id, owner=ServerOwner("s", id, "server")
            )
        )

    def create(self, id: str) -> None:
        self.add(id)
        until(lambda: id in self.started)

    def delete(self, id: str) -> None:
        self.store.write(lambda tx: self.local.delete(tx, id))
        until(lambda: not self.root(id).exists() and not marked(id))

    def root(self, id: str) -> Path:
        return self.folder / id

    def agent(self, id: str) -> int | None:
        return agent_of(id, self.root(id) / "agent.pid")


@pytest.fixture
def place(store, keys, tmp_path) -> Iterator[Place]:
    """Agents that find nobody at their URL: they live on and try again."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        made = Place(store, keys, tmp_path / "local", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        store.callbacks.bind(TxCallbacks(resource_woken=made.wake))
        made.begin()
        try:
            yield made
        finally:
            made.end()
            made.bury()


@pytest.fixture
def id(request) -> str:
    """Processes are found by it, so no two tests share one."""
    return f"local-{os.getpid()}-{abs(hash(request.node.nodeid)):x}"


def test_a_created_server_is_an_agent_with_its_own_root(place, id):
    place.create(id)
    root = place.root(id)
    assert root.stat().st_mode & 0o777 == 0o700
    config = root / "etc" / "agent.json"
    assert config.stat().st_mode & 0o777 == 0o600
    said = json.loads(config.read_text())
    assert (said["url"], said["server_id"]) == (place.url, id)
    assert place.keys.authenticate(said["key"]) == id
    assert place.agent(id) in marked(id)


def test_deleting_ends_the_agent_and_every_daemon_and_removes_the_root(place, id):
    place.create(id)
    environment = {**os.environ, MARKER: id}
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    daemon = subprocess.Popen(
        [sys.executable, "-c", stubborn], env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    assert daemon.stdout is not None
    daemon.stdout.readline()
    place.create(f"{id}-b")
    other = place.agent(f"{id}-b")
    key = json.loads((place.root(id) / "etc" / "agent.json").read_text())["key"]
    waiting = threading.Thread(target=daemon.communicate)
    waiting.start()
    place.delete(id)
    waiting.join(60)
    assert daemon.returncode == -signal.SIGKILL
    assert place.keys.get_cached(key) is None
    with place.store.read() as tx:
        assert servers.find(tx, id) is None
    assert place.agent(f"{id}-b") == other, "no other server"


def test_an_agent_that_dies_is_started_again_with_the_same_key(place, id):
    place.create(id)
    first = place.agent(id)
    config = (place.root(id) / "etc" / "agent.json").read_text()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: place.agent(id) not in (None, first))
    assert (place.root(id) / "etc" / "agent.json").read_text() == config


def test_a_clean_stop_ends_agents_and_keeps_daemons_and_files(place, id):
    place.create(id)
    environment = {**os.environ, MARKER: id}
    with subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True) as daemon:
        place.end()
        until(lambda: place.agent(id) is None)
        assert daemon.poll() is None
        assert (place.root(id) / "etc" / "agent.json").exists()
        place.begin()
        until(lambda: place.agent(id) is not None)
        place.delete(id)
        assert daemon.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize("has_pid_file", [True, False])
def test_after_kill_9_the_running_agent_is_adopted_and_supervised(place, id, has_pid_file):
    """Without the file, the server was killed between starting the agent and writing its number down."""
    place.create(id)
    first = place.agent(id)
    place.end(cleanly=False)
    assert place.agent(id) == first
    if not has_pid_file:
        (place.root(id) / "agent.pid").unlink()
    place.started.clear()
    place.begin()
    until(lambda: id in place.started)
    assert place.agent(id) == first
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: place.agent(id) not in (None, first))


def test_an_adopted_agent_ends_at_a_clean_stop(place, id):
    place.create(id)
    place.end(cleanly=False)
    place.begin()
    until(lambda: place.started.count(id) == 2)
    place.end()
    until(lambda: place.agent(id) is None)
    place.begin()


def test_an_agent_gets_the_new_address_of_the_server(place, id):
    place.create(id)
    first = place.agent(id)
    place.end(cleanly=False)
    place.url = "http://127.0.0.1:9"
    place.begin()
    until(lambda: place.agent(id) not in (None, first))
    assert json.loads((place.root(id) / "etc" / "agent.json").read_text())["url"] == place.url


def test_a_foreign_process_with_the_recorded_pid_is_not_touched(place, id):
    place.create(id)
    place.end()
    until(lambda: place.agent(id) is None)
    (place.root(id) / "agent.pid").write_text(str(os.getpid()))
    assert place.agent(id) is None
    place.begin()
    until(lambda: place.agent(id) is not None)
    place.delete(id)


def test_a_server_that_cannot_start_fails_with_the_reason(place, id):
    place.folder.mkdir(exist_ok=True)
    (place.folder / id).write_text("in the way")
    place.add(id)
    until(lambda: bool(place.failed))
    assert place.failed[0][0] == id
    assert "cannot start a local server" in place.failed[0][1]
    (place.folder / id).unlink()


def test_a_server_deleted_as_soon_as_created_leaves_nothing(place, id):
    place.add(id)
    place.delete(id)
    until(lambda: count_jobs(place.store) == 0)
    assert marked(id) == []
    assert not place.root(id).exists()


def test_an_agent_that_ends_at_once_is_restarted_with_growing_pauses(place, id):
    place.create(id)
    first = place.agent(id)
    assert first is not None
    lock = place.root(id) / "state" / "lock"
    until(lock.exists)
    with lock.with_name("taken").open("w") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)  # an agent whose state another process uses ends
        Path(taken.name).rename(lock)
        killed_at = time.monotonic()
        os.kill(first, signal.SIGKILL)
        until(lambda: place.local._agents.pauses._falls[id][1] >= 3)
    assert time.monotonic() - killed_at >= 0.5 + 1.0  # never less, however slow the machine is


def test_the_pause_before_a_restart_doubles_up_to_a_minute(id):
    pauses = RestartPauses()
    pauses.record_start(id)
    assert [pauses.next(id) for _ in range(9)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
