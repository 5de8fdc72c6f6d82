"""Checks and drift on the command line."""

import json
import re

import pytest

from client.site import succeed
from stoker_client.collection import ReadOnlyCollection

CHANGES = [
    {"item": "/etc/motd", "outcome": "changed", "diff": "-old\n+new"},
    {"item": "nginx", "outcome": "failed", "diff": ""},
]
SERVER = "web1"
TEMPLATE = """
heat_template_version: 2021-04-16
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {group: script, config: echo}}
"""
DEPLOYMENT = """
  %s:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: %s, signal_transport: STOKER_SIGNAL}
"""


def report(agent, check, state="IN_SYNC", changes=()):
    """The agent's answer to a request for a check."""
    body = {"config_id": check["id"], "state": state, "changes": list(changes), "requested": check["requested"]}
    assert agent.call("POST", f"/checks/{check['deployment_id']}", body).status == 204


def create_stack(site, agent, *names):
    """A stack with deployments on a server whose agent runs them. Return their ids."""
    stack = site.create_stack("shop", TEMPLATE + "".join(DEPLOYMENT % (name, agent.id) for name in names))
    ids = site.resource_ids(stack)
    return [ids[name] for name in names]


@pytest.fixture
def fleet(site):
    """A stack with a deployment that has drifted, and deployments of servers without a stack."""

    def check(agent, entry):
        is_drifted = entry["name"] != "config"
        report(agent, entry, *(("DRIFTED", CHANGES) if is_drifted else ()))

    web1, web2 = site.add_agent(SERVER), site.add_agent("web2")
    site.act(web1, succeed, check)
    site.act(web2, lambda agent, run: agent.finish(run["id"], 1))
    [site.drifted] = create_stack(site, web1, "motd")
    others = [site.deploy(web1, "config"), site.deploy(web2)]
    site.stoker.until(lambda: all(site.deployment(each["id"])["status"] != "IN_PROGRESS" for each in others))
    site.api("POST", "/checks", {"servers": [web1.id, web2.id]})
    site.stoker.until(lambda: not any(each["pending"] for each in site.api("GET", "/checks")["checks"]))
    return site


#: words, a part of the output
SHOWN = [
    (("drift", "list"), r"shop/motd +web1 +DRIFTED"),
    (("drift", "list", "-o", "value", "-c", "deployment", "-c", "summary"), r"^shop/motd\t/etc/motd, nginx\n$"),
    (("drift", "list", "--all", "-o", "csv", "-c", "state", "--sort", "state"), "^state\nDRIFTED\nIN_SYNC\nUNKNOWN\n$"),
    (("drift", "list", "--all", "-o", "value", "-c", "state", "--limit", "2"), r"^[A-Z_]+\n[A-Z_]+\n$"),
    (("drift", "list", "--all", "-o", "value", "-c", "state", "--limit", "1", "--sort", "state:desc"), r"^UNKNOWN\n$"),
    (("drift", "list", "--state", "in_sync", "-o", "value", "-c", "deployment"), r"^config\n$"),
    (("drift", "list", "--stack", "shop", "--all", "-o", "value", "-c", "server"), r"^web1\n$"),
    (("drift", "list", "--server", SERVER, "--all", "-o", "value", "-c", "state", "--sort", "state"),
     r"^DRIFTED\nIN_SYNC\n$"),
    (("drift", "list", "--state", "UNKNOWN", "-o", "value", "-c", "summary"), r"^The last run failed: .*\n$"),
    (("drift", "list", "-o", "wide"), r"Enforce"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "shown"), SHOWN)
def test_drift_list(fleet, stoker, words, shown):
    result = stoker(*words)
    assert (result.code, result.err) == (0, "")
    assert re.search(shown, result.out), result.out


def test_a_limit_is_applied_by_the_service_and_more_rows_are_read_in_pages(fleet, stoker, monkeypatch):
    def requests():
        return [path for verb, path in fleet.calls if path.startswith("/checks")]

    stoker("drift", "list", "--all", "--limit", "2")
    assert requests() == ["/checks?limit=2"]
    monkeypatch.setattr(ReadOnlyCollection, "page_size", 2)
    listed = stoker("drift", "list", "--all", "-o", "json").data
    assert len(listed) == 3
    assert requests()[1:] == ["/checks?limit=2", f"/checks?limit=2&marker={listed[1]['deployment_id']}"]


def test_drift_show_prints_the_differences(fleet, stoker):
    id_ = fleet.drifted
    shown = stoker("drift", "show", id_)
    assert shown.code == 0, shown.err
    assert "shop/motd on web1:\n  changed: /etc/motd\n      -old\n      +new\n  failed: nginx\n" in shown.out
    assert stoker("drift", "show", id_[:8], "-o", "json").data["changes"] == CHANGES


def test_drifted_deployments_are_repaired(fleet, stoker):
    assert "DRIFTED since" in stoker("deployment", "show", fleet.drifted).out
    refused = stoker("drift", "repair", "config")
    assert (refused.code, "is IN_SYNC: only what has drifted is repaired" in refused.err) == (5, True)
    repaired = stoker("drift", "repair", "--stack", "shop", "--wait")
    assert (repaired.code, repaired.out) == (0, f"deployment {fleet.drifted} runs again\n")
    assert stoker("drift", "repair", "--all").out == "nothing has drifted\n"


def test_a_state_that_no_agent_confirms_is_unknown(fleet, stoker):
    offline = {"server_status": "OFFLINE"}
    fleet.change("GET", "/checks", lambda body: {"checks": [{**each, **offline} for each in body["checks"]]})
    states = stoker("drift", "list", "--all", "-o", "value", "-c", "state", "--sort", "state").out
    assert states == "DRIFTED\nUNKNOWN\nUNKNOWN\n"


#: states that the agent reports, exit code
STATES = [
    (("IN_SYNC",), 0),
    (("IN_SYNC", "DRIFTED"), 3),
    (("DRIFTED", "UNKNOWN"), 3),
    (("IN_SYNC", "UNKNOWN"), 1),
    (("IN_SYNC", "UNSUPPORTED"), 0),
    (("UNSUPPORTED", "UNKNOWN"), 1),
]


@pytest.mark.parametrize(("states", "code"), STATES)
def test_check_waits_for_the_agents_and_exits_with_the_worst_state(site, stoker, states, code):
    agent, by_deployment = site.add_agent(SERVER), {}

    def check(agent, entry):
        state = by_deployment[entry["deployment_id"]]
        report(agent, entry, state, CHANGES if state == "DRIFTED" else ())

    site.act(agent, succeed, check)
    ids = create_stack(site, agent, "first", "second")
    by_deployment.update(zip(ids, (*states, states[-1]), strict=False))

    result = stoker("check", "shop", "-o", "table")
    assert (result.code, result.err) == (code, "")
    assert ("    +new" in result.out) == ("DRIFTED" in states)
    assert stoker("check", "shop", "--strict").code == (1 if "UNSUPPORTED" in states else code)
    shown = stoker("check", "shop", "-o", "json")
    assert (shown.code, {row["deployment_id"]: row["state"] for row in json.loads(shown.out)}) == (code, by_deployment)


@pytest.fixture
def deployed(site):
    """A deployment on a server whose agent answers no check."""
    agent = site.add_agent(SERVER)
    id_ = site.deploy(agent)["id"]
    succeed(agent, *agent.entries())
    site.stoker.until(lambda: site.deployment(id_)["status"] == "COMPLETE")


def test_a_check_of_nothing_or_without_an_answer(site, stoker, deployed):
    site.create_stack("empty")
    empty = stoker("check", "empty")
    assert (empty.code, empty.out, empty.err) == (1, "", "stoker: no deployment to check\n")

    words = ("check", "--server", SERVER, "--timeout", "1", "-o", "value", "-c", "state")
    late = stoker(*words)
    assert (late.code, late.out) == (124, "UNKNOWN\n")
    offline = {"server_status": "OFFLINE"}
    site.change("POST", "/checks", lambda body: {"checks": [{**each, **offline} for each in body["checks"]]})
    result = stoker(*words[:3], *words[5:])
    assert (result.code, result.out) == (1, "UNKNOWN\n"), "it does not wait for servers that are offline"
