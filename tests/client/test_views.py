"""Folded output on the command line: ranges of servers, groups of equal output, differences; and other views."""

from __future__ import annotations

import json

import pytest

from stoker_client.cli._fold import fold_names
from support.agent_protocol import SpokenAgent


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["web1"], "web1"),
        (["db", "db"], "db"),
        (["web2", "web1", "web3", "web10", "web20"], "web[1-3,10,20]"),
        (["web09", "web10", "web11", "web099", "web100"], "web[09-11,099-100]"),
        (["web9", "web10"], "web[9-10]"),
        (["web", "web1", "web2"], "web,web[1-2]"),
        (["web1.a.org", "web2.a.org", "web2.b.org"], "web[1-2].a.org,web2.b.org"),
        (["rack1-web1", "rack1-web2", "rack2-web1"], "rack1-web[1-2],rack2-web1"),
        (["n1.dc2", "n2.dc2", "host.dc1"], "n[1-2].dc2,host.dc1"),
        ([], ""),
    ],
)
def test_names_are_folded_by_their_numbers(names, folded):
    assert fold_names(names) == folded


@pytest.fixture
def outputs(site):
    """A trigger whose runs have ended on four servers, with three different results."""
    agents = [site.add_agent(f"web{number}") for number in (1, 2, 3, 4)]
    body = {"config_id": site.account.create_config(), "servers": [agent.id for agent in agents]}
    trigger = site.account.create("software_triggers", **body)["id"]
    texts = [f"host {agent.name}\nrelease 1\n" for agent in agents]
    texts[2] = "host web3\nrelease 2\n"
    for agent, text, code in zip(agents, texts, (0, 0, 0, 3), strict=True):
        _end(agent, text, code)
    return trigger


def _end(agent: SpokenAgent, text: str, code: int) -> None:
    [run] = agent.entries()
    result = {"deploy_stdout": text, "deploy_stderr": "", "deploy_status_code": code}
    assert agent.call("POST", f"/runs/{run['id']}/signal", result).status == 200


@pytest.mark.slow
def test_equal_output_is_printed_once_and_states_have_digests(outputs, stoker, monkeypatch):
    rule = "-" * 15
    assert stoker("trigger", "show", outputs, "--fold").out == (
        f"{rule}\nweb[1-2] (2)\n{rule}\nhost <server>\nrelease 1\n"
        f"{rule}\nweb3 (1)\n{rule}\nhost <server>\nrelease 2\n"
        f"{rule}\nweb4 (1), exit code 3\n{rule}\nhost <server>\nrelease 1\n"
    )
    assert stoker("trigger", "show", outputs, "--diff").out == (
        f"{rule}\nweb[1-2] (2)\n{rule}\nhost <server>\nrelease 1\n"
        "--- web[1-2] (2)\n+++ web3 (1)\n@@ -1,2 +1,2 @@\n host <server>\n-release 1\n+release 2\n"
        "--- web[1-2] (2)\n+++ web4 (1), exit code 3\n the same output\n"
    )
    result = stoker("trigger", "show", outputs, "--fold", "--status", "FAILED", "-o", "json")
    assert [group["servers"] for group in json.loads(result.out)] == [["web4"]]

    monkeypatch.setattr("stoker_client.triggers._PAGE", 2)  # several pages
    rows = stoker("trigger", "targets", outputs, "-o", "json").data
    assert [(row["server_name"], row["status"], row["exit_code"]) for row in rows] == [
        *((name, "COMPLETE", "0") for name in ("web1", "web2", "web3")),
        ("web4", "FAILED", "3"),
    ]
    one, two, three, four = (row["digest"] for row in rows)
    assert one == two == four != three
    followed = stoker("trigger", "targets", outputs, "--follow", "--status", "FAILED")
    assert followed.out == "web4\tFAILED\t3\n"
    failed = stoker("trigger", "targets", outputs, "--status", "failed", "-o", "value", "-c", "server_name")
    assert failed.out == "web4\n"

    overview = {row["name"]: row for row in stoker("overview", "-o", "json").data}
    assert overview["failed_triggers"]["count"] == 1
    assert overview["failed_triggers"]["path"].startswith("software_triggers?status=FAILED&ended_since=")


@pytest.mark.slow
def test_forecast_lists_the_next_times(site, stoker):
    site.add_agent("web1")
    trigger = {"config_id": site.account.create_config(), "servers": ["web1"]}
    site.api("POST", "/software_schedules", {"name": "often", "trigger": trigger, "cron": "* * * * *"})
    result = stoker("schedule", "forecast", "--within", "1h", "--limit", "2", "-o", "json")
    assert [(row["schedule_name"], row["servers"]) for row in json.loads(result.out)] == [("often", 1)] * 2
    assert "there are more times" in result.err


@pytest.mark.slow
def test_run_folds_output_at_its_end(site, stoker):
    for name in ("web1", "web2"):
        site.act(site.add_agent(name), lambda agent, _: _end(agent, f"{agent.name} is up\n", 0))
    result = stoker("run", "web*", "--fold", "--", "true")
    rule = "-" * 15
    assert (result.code, result.out) == (0, f"{rule}\nweb[1-2] (2)\n{rule}\n<server> is up\n")
