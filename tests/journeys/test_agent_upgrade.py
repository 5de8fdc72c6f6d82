"""Real agents of an old version become the server's, asked by the command line or by the setting."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import stoker_agent
from support.agent_programs import build_agent
from support.agents import own_agent
from support.server import served

pytestmark = pytest.mark.slow
VERSION = stoker_agent.__version__


@pytest.fixture
def stoker(request, tmp_path, database_url):
    with served(tmp_path, "--agent-update", request.param, database=database_url) as running:
        running.mode = request.param
        yield running


@pytest.fixture
def agents(stoker, tmp_path):
    """Three agents of version 0.0.1."""
    program = build_agent(tmp_path / "old", "0.0.1")
    with ExitStack() as left:
        agents = []
        for name in ("web1", "web2", "web3"):
            agent = left.enter_context(own_agent(tmp_path / name))
            agent.enroll(stoker, name)
            path = agent.root / "stoker-agent.pyz"
            path.write_bytes(program)
            agent.program = (str(path),)
            agent.start()
            agents.append(agent)
        yield agents


def versions(stoker) -> dict[str, str]:
    return {server["name"]: server["agent_version"] for server in stoker.heat("GET", "/servers").body["servers"]}


# Each way and each database once; tests/servers/test_agent_upgrades.py tests all on both.
@pytest.mark.parametrize(("stoker", "database_url"), [("MANUAL", "postgresql"), ("AUTOMATIC", "sqlite")], indirect=True)
def test_agents_become_the_servers_version(stoker, agents):
    if stoker.mode == "AUTOMATIC":
        stoker.until(lambda: set(versions(stoker).values()) == {VERSION})
        return
    stoker.until(lambda: set(versions(stoker).values()) == {"0.0.1"})
    assert "0.0.1 (outdated)" in stoker.run("server", "list").stdout
    assert stoker.json("server", "show", "web1")["agent_outdated"] is True
    stoker.run("server", "label", "web1", "web2", "role=web")
    stoker.run("server", "upgrade", "--label", "role=web", "--canary", "50%", "--pause-on-failure")
    stoker.until(lambda: versions(stoker) == {"web1": VERSION, "web2": VERSION, "web3": "0.0.1"})
    stoker.until(lambda: {each["status"] for each in stoker.json("server", "upgrade", "--status")} == {"COMPLETE"})
    shown = stoker.json("server", "show", "web2")
    assert (shown["agent_outdated"], shown["agent_upgrade"]["status"]) == (False, "COMPLETE")
    stoker.run("run", "web2", "--", "true")
    refused = stoker.run("server", "upgrade", "web1", "--canary", "0", check=False)
    assert (refused.returncode, "--canary is a number of servers" in refused.stderr) == (2, True)
    actions = {entry["action"] for entry in stoker.json("audit", "list")}
    assert "upgrade agent" in actions
