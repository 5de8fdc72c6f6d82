"""Approval of servers and upgrades of agents on the command line."""

import json

import pytest

pytestmark = pytest.mark.slow


def add_pending(site, *names):
    """Servers that wait for their approval."""
    many = site.api("POST", "/enrollments", {"limit": len(names), "labels": {}, "approval": True})["enrollment"]
    for name in names:
        machine = {"token": many["token"], "instance": name, "machine": f"machine {name}", "hostname": name}
        assert site.stoker.request("POST", "/agent/v1/enroll", machine).status == 201


def test_approve_and_reject_name_the_servers(site, stoker):
    add_pending(site, "web1", "web2")

    assert stoker("server", "approve", "web1").out == "server web1 approved\n"
    refused = stoker("server", "reject", "--all")
    assert (refused.code, "server web2 not deleted" in refused.err) == (2, True)
    assert stoker("server", "reject", "--all", "--yes").out == "server web2 deleted\n"
    assert stoker("server", "approve", "--all").err == "no server waits for approval\n"
    assert stoker("server", "reject", "web1", "--yes").code == 5
    assert stoker("server", "approve", "web9").code == 4


def test_an_upgrade_is_a_trigger_of_a_config_of_the_group_agent(site, stoker):
    web1, web2 = (site.add_agent(name, "1.0; hooks=agent") for name in ("web1", "web2"))
    words = ("--canary", "10%", "--max-fail-percentage", "5", "-o", "json")
    result = stoker("server", "upgrade", web1.id[:8], "web2", *words)
    assert result.code == 0, result.err
    shown = json.loads(result.out)
    assert (shown["name"], shown["canary"], shown["max_fail_percentage"], shown["total"]) == (
        "agent-upgrade",
        "10%",
        5,
        2,
    )
    assert site.bodies[-1][2]["servers"] == [web1.id, web2.id]
    assert stoker("server", "upgrade", "web9").code == 4
    assert stoker("server", "upgrade", "web1").code == 0
    configs = json.loads(stoker("config", "list", "-o", "json").out)
    assert [config["group"] for config in configs if config["name"] == "agent-upgrade"] == ["agent"]


def test_approval_continues_after_a_failure(site, stoker):
    add_pending(site, "web1")
    site.add_agent("web2")
    result = stoker("server", "approve", "web9", "web2", "web1")
    assert (result.code, result.out) == (1, "server web1 approved\n")
    assert len(result.err.splitlines()) == 2
    add_pending(site, "web3")
    assert stoker("server", "approve", "--all").out == "server web3 approved\n"


def test_facts_are_listed_with_their_values(site, stoker):
    for name in ("web1", "web2"):
        site.add_agent(name)
    assert stoker("server", "label", "web1", "web2", "tier=web").code == 0
    rows = {row["name"]: row for row in json.loads(stoker("server", "facts", "-o", "json").out)}
    assert rows["tier"]["values"] == ["web (2)"]
    assert "web (2)" in stoker("server", "facts").out


def test_lists_find_a_part_of_a_name(site, stoker):
    web = site.add_agent("web1")
    config = site.api("POST", "/software_configs", {"name": "Nightly backup", "group": "script", "config": "x"})
    body = {"config_id": config["software_config"]["id"], "servers": [web.id], "name": "Nightly backup"}
    site.api("POST", "/software_triggers", body)
    for noun in ("trigger", "deployment"):
        for text, count in (("BACK", 1), ("absent", 0)):
            listed = json.loads(stoker(noun, "list", "--contains", text, "-o", "json").out)
            assert len(listed) == count, (noun, text)
    assert json.loads(stoker("stack", "list", "--contains", "absent", "-o", "json").out) == []
