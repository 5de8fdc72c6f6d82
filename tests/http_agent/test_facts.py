"""Facts of servers: reported by agents, shown to people."""

from __future__ import annotations

import json

import pytest

from support.agents import enrolled_agent
from support.templates import define, on, template

FACTS = {
    "os": {"id": "debian", "family": "debian", "name": "Debian GNU/Linux", "version": "12"},
    "kernel": "6.1.0-13-amd64",
    "memory_mb": 7941,
    "address": "10.0.0.5",
    "networks": {"eth0": ["10.0.0.5"]},
    "tools": {"puppet": ""},
}


def shown(stoker, agent):
    return stoker.heat("GET", f"/servers/{agent.name}").body["server"]


def test_facts_are_stored_shown_and_replaced(stoker, agent):
    server = shown(stoker, agent)
    assert [server[name] for name in ("facts", "facts_at", "os", "address")] == [None] * 4
    assert agent.call("PUT", "/facts", FACTS).status == 204
    server = shown(stoker, agent)
    assert server["facts"] == FACTS
    assert (server["os"], server["address"]) == ("Debian GNU/Linux 12", "10.0.0.5")
    assert server["facts_at"].endswith("Z")
    assert listed(stoker, agent) == {name: value for name, value in server.items() if name != "facts"}
    agent.call("PUT", "/facts", dict(reversed(FACTS.items())))
    assert shown(stoker, agent) == server, "unchanged facts keep their time"
    assert agent.call("PUT", "/facts", {"os": {"id": "alpine"}}).status == 204
    server = shown(stoker, agent)
    assert (server["facts"], server["os"], server["address"]) == ({"os": {"id": "alpine"}}, "alpine", None)
    assert listed(stoker, agent) == {name: value for name, value in server.items() if name != "facts"}


def listed(stoker, agent):
    """The server among all servers."""
    return {server["id"]: server for server in stoker.heat("GET", "/servers").body["servers"]}[agent.id]


def test_lists_show_why_an_agent_can_start_no_run(stoker, agent):
    reason = "the agent cannot write /var/lib/stoker-agent/runs: No space left on device"
    agent.call("PUT", "/facts", {**FACTS, "problem": reason})
    assert listed(stoker, agent)["problem"] == shown(stoker, agent)["problem"] == reason
    [line] = [line for line in stoker.run("server", "list").stdout.splitlines() if agent.id in line]
    assert f"{shown(stoker, agent)['status']} (cannot run)" in line
    assert reason in stoker.run("server", "show", agent.name).stdout
    agent.call("PUT", "/facts", FACTS)
    assert shown(stoker, agent)["problem"] is None


def test_unknown_facts_become_facts_of_the_site(stoker, agent):
    assert agent.call("PUT", "/facts", {"gpu": "x", "custom": {"rack": 1}}).status == 204
    assert shown(stoker, agent)["facts"] == {"custom": {"gpu": "x", "rack": 1}}


def test_the_labels_among_the_facts_are_those_that_the_server_has_at_stoker(stoker, agent):
    def selected(text):
        listed = stoker.heat("GET", f"/servers?selector={text}%20and%20hostname={agent.name}").body["servers"]
        return [server["id"] for server in listed]

    reported = {"labels": {"role": "forged"}, "hostname": agent.name, "kernel": "6.1"}
    assert agent.call("PUT", "/facts", reported).status == 204
    assert shown(stoker, agent)["facts"] == {"hostname": agent.name, "kernel": "6.1"}
    forms = ("role={}", "labels.role={}", "fact.labels.role={}", "label.role={}")
    assert [selected(form.format("forged")) for form in forms] == [[]] * 4
    stoker.heat("PATCH", f"/servers/{agent.id}", {"labels": {"role": "web"}})
    assert shown(stoker, agent)["facts"]["labels"] == {"role": "web"}
    assert [selected(form.format("web")) for form in forms] == [[agent.id]] * 4
    agent.call("PUT", "/facts", {**reported, "kernel": "6.2"})
    assert shown(stoker, agent)["facts"]["labels"] == {"role": "web"}


def test_hooks_among_the_facts_are_the_server_s_hooks(stoker, agent):
    agent.document(X_Stoker_Agent="1.0; hooks=script")
    stoker.until(lambda: shown(stoker, agent)["hooks"] == ["script"])
    agent.call("PUT", "/facts", {"hooks": ["ansible", "script"]})
    assert shown(stoker, agent)["hooks"] == ["ansible", "script"]


def nested(levels):
    """Facts with so many levels, at least three."""
    return {"custom": {"a": json.loads("[" * (levels - 2) + "]" * (levels - 2))}}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([], "the facts must be a JSON object"),
        ({"memory_mb": "4 GB"}, "memory_mb must be a whole number, not a string"),
        ({"cpus": -1}, "cpus must be at least 0"),
        ({"os": "debian"}, "os must be a map, not a string"),
        ({"kernel": "x" * 256}, "kernel must have at most 255 characters"),
        ({"tools": {"a": 1}}, "must be a string, not a whole number"),
        ({"custom": []}, "custom must be a map, not a list"),
        ({"custom": {"": 1}}, "'' is no name"),
        ({"custom": {"a\x07": 1}}, "is no name"),
        (nested(9), "nested too deeply: more than 8 levels"),
    ],
)
def test_invalid_facts_are_refused(agent, facts, message):
    answer = agent.call("PUT", "/facts", facts)
    assert answer.status == 400
    assert message in answer.body["error"]["message"]


def test_facts_have_a_limit(agent):
    assert agent.call("PUT", "/facts", nested(8)).status == 204
    assert agent.call("PUT", "/facts", {"custom": {"a": "x" * 32_000}}).status == 204
    assert agent.call("PUT", "/facts", {"custom": {"a": "x" * 33_000}}).status in (400, 413)


def test_a_deployment_whose_hook_is_missing_is_refused(stoker, agent):
    agent.call("PUT", "/facts", {"hooks": ["script"]})
    config = stoker.create("software_configs", group="cobol", config="x")["id"]
    values = {"config_id": config, "server_id": agent.id}
    for more in ({"status": "IN_PROGRESS"}, {"signal_transport": "STOKER_SIGNAL"}):
        answer = stoker.heat("POST", "/software_deployments", {**values, **more})
        assert answer.status == 409
        assert f"The server '{agent.name}' has no hook for the group 'cobol'" in answer.body["error"]["message"]
    assert agent.entries() == []
    agent.call("PUT", "/facts", {"hooks": ["cobol", "script"]})
    assert stoker.heat("POST", "/software_deployments", {**values, "status": "IN_PROGRESS"}).status == 200
    assert len(agent.entries()) == 1


@pytest.mark.parametrize(("group", "program"), [("ansible", "ansible-playbook"), ("script", None)])
def test_a_preview_warns_of_a_missing_program(stoker, agent, group, program):
    agent.call("PUT", "/facts", {"hooks": ["ansible", "script"], "tools": {"git": "2"}})
    said = template({"config": define("OS::Heat::SoftwareConfig", group=group, config="x"), "app": on(agent.id)})
    answer = stoker.heat("POST", "/stacks/preview", {"stack_name": "previewed", "template": said})
    warning = answer.headers["Warning"]
    assert (answer.status, warning is None) == (200, program is None)
    assert program is None or f"has no {program}, which the hook of the group '{group}' calls" in warning


@pytest.mark.slow
def test_an_agent_s_facts_select_its_server(stoker, tmp_path):
    with enrolled_agent(tmp_path, stoker, "facts1") as agent:

        def shown():
            return stoker.heat("GET", "/servers/facts1").body["server"]

        stoker.until(lambda: shown()["facts"])
        facts = shown()["facts"]
        assert shown()["os"].startswith(facts["os"]["name"])
        assert shown()["hooks"] == facts["hooks"]
        # A run installs a fact of the site, which the agent reports after the run.
        script = f"mkdir -p {agent.root}/etc/facts.d; echo row=4 > {agent.root}/etc/facts.d/rack.txt"
        id = stoker.create("software_configs", group="script", config=script)["id"]
        selector = f"hostname={facts['hostname']} and hooks=script"
        assert stoker.create("software_triggers", config_id=id, selector=selector)["total"] == 1
        stoker.until(lambda: shown()["facts"].get("custom") == {"rack": {"row": "4"}})
        listed = stoker.heat("GET", "/servers?selector=custom.rack.row=4").body["servers"]
        assert [entry["name"] for entry in listed] == ["facts1"]
