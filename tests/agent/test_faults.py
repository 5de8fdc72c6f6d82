"""A machine that is short of everything, or far away: each run is reported, and what is still to be told stays."""

from __future__ import annotations

import errno

import pytest

from agent.conftest import KEY
from stoker_agent import active_run, live
from stoker_agent.agent import Agent
from stoker_agent.config import Config, Paths
from stoker_agent.output_files import AFTERWARDS
from stoker_agent.service_manager import ServiceManager
from stoker_agent.settings import Settings
from stoker_agent.status import StatusFile
from stoker_agent.transports import STOKER

pytestmark = pytest.mark.slow

MB = 1024 * 1024


@pytest.fixture
def here(tmp_path, server):
    """An agent in this process."""
    paths = Paths.of(str(tmp_path))
    paths.make()
    config = Config(server.url, "s1", KEY)
    return Agent(config, Settings((STOKER,), {}), paths, None, StatusFile(paths.state, []), ServiceManager())


@pytest.mark.parametrize(
    "fault", [OSError(errno.EMFILE, "Too many open files"), RuntimeError("can't start new thread")]
)
def test_a_run_whose_thread_or_process_cannot_start_is_reported(server, here, monkeypatch, fault):
    def execute(*_):
        raise fault

    monkeypatch.setattr(active_run.Execution, "execute", execute)
    server.give(server.entry("c1", "true"), server.entry("c2", "true"))
    here.once(60)
    for id in ("c1", "c2"):
        values = server.result(id)
        assert values["deploy_status_code"] == 1
        assert str(fault) in values["deploy_status_reason"]


def test_output_that_was_not_sent_yet_is_kept_on_disk(server, here, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "_LAST_SECONDS", 0.5)
    server.released["logs"].clear()
    server.give(server.entry("c1", f"sleep 0.2; head -c {4 * MB} /dev/zero | tr '\\0' x"))
    here.once(60)
    here.tidy()
    assert server.results("c1"), "the report does not wait for the log"
    server.released["logs"].set()
    server.until(lambda: len(server.logs.get(("c1", "stdout"), b"")) == 4 * MB)
    assert set(server.logs["c1", "stdout"]) == set(b"x")

    def tidied():
        here.tidy()
        return tmp_path.joinpath("state/runs/c1/stdout").stat().st_blocks * 512 <= 3 * AFTERWARDS

    server.until(tidied)
