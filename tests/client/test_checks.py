"""Checks and drift on the command line."""

import json
import re

import pytest

from stoker_client import checks, collection

CHANGES = [{"item": "/etc/motd", "outcome": "changed", "diff": "-old\n+new"}, {"item": "nginx", "outcome": "failed"}]
SERVER = "web1"


@pytest.fixture
def fleet(heat):
    """A stack with a deployment that has drifted, and deployments of servers without a stack."""
    stack = heat.add_stack("shop")
    server = heat.add_server(SERVER)
    names = {"stack_id": stack["id"], "stack_name": "shop", "resource_name": "motd", "server_id": server["id"]}
    heat.drifted = heat.add_check("DRIFTED", **names, summary="/etc/motd, nginx", changes=CHANGES)
    heat.add_check("IN_SYNC", server_id=server["id"])
    heat.add_check("UNKNOWN", server_name="web2", name=None, reason="The last run failed: x", server_status="OFFLINE")
    return heat


#: words, a part of the output
SHOWN = [
    (("drift", "list"), r"shop/motd +web1 +DRIFTED"),
    (("drift", "list", "-o", "value", "-c", "deployment", "-c", "summary"), r"^shop/motd\t/etc/motd, nginx\n$"),
    (("drift", "list", "--all", "-o", "csv", "-c", "state"), r"^state\nDRIFTED\nIN_SYNC\nUNKNOWN\n$"),
    (("drift", "list", "--all", "-o", "value", "-c", "state", "--limit", "2"), r"^DRIFTED\nIN_SYNC\n$"),
    (("drift", "list", "--all", "-o", "value", "-c", "state", "--limit", "1", "--sort", "state:desc"), r"^UNKNOWN\n$"),
    (("drift", "list", "--state", "in_sync", "-o", "value", "-c", "deployment"), r"^config\n$"),
    (("drift", "list", "--stack", "shop", "--all", "-o", "value", "-c", "server"), r"^web1\n$"),
    (("drift", "list", "--server", SERVER, "--all", "-o", "value", "-c", "state"), r"^DRIFTED\nIN_SYNC\n$"),
    (("drift", "list", "--state", "UNKNOWN", "-o", "value", "-c", "summary"), r"^The last run failed: x\n$"),
    (("drift", "list", "-o", "wide"), r"Enforce"),
]


@pytest.mark.parametrize(("words", "shown"), SHOWN)
def test_drift_list(fleet, stoker, words, shown):
    result = stoker(*words)
    assert (result.code, result.err) == (0, "")
    assert re.search(shown, result.out), result.out


def test_a_limit_is_applied_by_the_service_and_more_rows_are_read_in_pages(fleet, stoker, monkeypatch):
    stoker("drift", "list", "--all", "--limit", "2")
    asked = [path for verb, path in fleet.calls if path.startswith("/checks")]
    assert asked == ["/checks?limit=2"]
    monkeypatch.setattr(collection, "PAGE", 2)
    assert len(json.loads(stoker("drift", "list", "--all", "-o", "json").out)) == 3
    marker = list(fleet.checks)[1]
    assert [path for verb, path in fleet.calls if path.startswith("/checks")][1:] == [
        "/checks?limit=2",
        f"/checks?limit=2&marker={marker}",
    ]


def test_drift_show_prints_the_differences(fleet, stoker):
    id_ = fleet.drifted["deployment_id"]
    fleet.deployments[id_] = {
        "id": id_,
        "config_id": "c",
        "server_id": fleet.drifted["server_id"],
        "status": "COMPLETE",
    }
    shown = stoker("drift", "show", id_)
    assert shown.code == 0, shown.err
    assert "shop/motd on web1:\n  /etc/motd\n    -old\n    +new\n  nginx (failed)\n" in shown.out
    assert json.loads(stoker("drift", "show", id_[:8], "-o", "json").out)["changes"] == CHANGES


#: words, exit code, error
REFUSED = [
    (("drift", "list", "--state", "odd"), 2, "'odd' is not one of"),
    (("drift", "list", "--stack", "absent"), 4, "stoker: The Stack (absent) could not be found"),
    (("drift", "list", "--server", "absent"), 4, "stoker: "),
    (("drift", "show", "0" * 32), 4, "stoker: "),
    (("check",), 2, "say what to check: a STACK, --server or --label"),
    (("check", "shop", "--server", "web1"), 2, "say what to check: a STACK, --server or --label"),
    (("check", "absent"), 4, "stoker: The Stack (absent) could not be found"),
    (("check", "--server", "absent"), 4, "stoker: "),
    (("check", "empty"), 1, "stoker: there is no deployment to check"),
]


@pytest.mark.parametrize(("words", "code", "error"), REFUSED)
def test_an_error_has_one_line(fleet, stoker, words, code, error):
    fleet.add_stack("empty")
    result = stoker(*words)
    assert (result.code, result.out) == (code, ""), result.err
    assert error in result.err.splitlines()[-1]
    assert code == 2 or len(result.err.splitlines()) == 1


#: states that the agents report (the first deployment's server is offline without one), exit code
STATES = [
    (("IN_SYNC",), 0),
    (("IN_SYNC", "DRIFTED"), 3),
    (("DRIFTED", "UNKNOWN"), 3),
    (("IN_SYNC", "UNKNOWN"), 1),
    (("IN_SYNC", "UNSUPPORTED"), 0),
    (("UNSUPPORTED", "UNKNOWN"), 1),
]


@pytest.mark.parametrize(("states", "code"), STATES)
def test_check_waits_for_the_agents_and_exits_with_the_worst_state(heat, stoker, monkeypatch, states, code):
    monkeypatch.setattr(checks, "_FIRST_PAUSE", 0.001)
    stack = heat.add_stack("shop")
    for state in states:
        check = heat.add_check("UNKNOWN", stack_id=stack["id"], changes=CHANGES if state == "DRIFTED" else [])
        heat.check_answers[check["deployment_id"]] = state
    result = stoker("check", "shop", "-o", "table")
    assert (result.code, result.err) == (code, "")
    assert ("    +new" in result.out) == ("DRIFTED" in states)
    assert stoker("check", "shop", "--strict").code == (1 if "UNSUPPORTED" in states else code)
    shown = stoker("check", "shop", "-o", "json")
    assert (shown.code, [row["state"] for row in json.loads(shown.out)]) == (code, list(states))


def test_check_does_not_wait_for_servers_that_are_offline(heat, stoker):
    server = heat.add_server("web1")
    heat.add_check("IN_SYNC", server_id=server["id"], server_status="OFFLINE")
    result = stoker("check", "--server", "web1", "-o", "value", "-c", "state")
    assert (result.code, result.out) == (1, "UNKNOWN\n")


def test_check_ends_when_the_time_is_over(heat, stoker, monkeypatch):
    monkeypatch.setattr(checks, "_FIRST_PAUSE", 0.001)
    server = heat.add_server("web1")
    heat.add_check("IN_SYNC", server_id=server["id"])
    result = stoker("check", "--server", "web1", "--timeout", "1", "-o", "value", "-c", "state")
    assert (result.code, result.out) == (124, "UNKNOWN\n")
