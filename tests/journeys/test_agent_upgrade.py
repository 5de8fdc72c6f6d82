"""Real agents of an old version become the server's, by a trigger."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import stoker_agent
from support.agent_programs import build_agent
from support.agents import own_agent

pytestmark = pytest.mark.slow
VERSION = stoker_agent.__version__


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


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_agents_become_the_servers_version(stoker, agents):
    stoker.until(lambda: set(versions(stoker).values()) == {"0.0.1"})
    assert "0.0.1 (outdated)" in stoker.run("server", "list").stdout
    assert stoker.json("server", "show", "web1")["agent_outdated"] is True
    stoker.run("server", "label", "web1", "web2", "role=web")
    words = ("--label", "role=web", "--canary", "50%", "--max-fail-percentage", "0", "--follow")
    assert "agent-upgrade" in stoker.run("server", "upgrade", *words).stderr
    assert versions(stoker) == {"web1": VERSION, "web2": VERSION, "web3": "0.0.1"}
    assert stoker.json("trigger", "show", "agent-upgrade")["changed"] == 2
    assert stoker.json("server", "show", "web2")["agent_outdated"] is False
    stoker.run("run", "web2", "--", "true")
    refused = stoker.run("server", "upgrade", "web1", "--canary", "0", check=False)
    assert (refused.returncode, "--canary is a number of servers" in refused.stderr) == (2, True)
