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


def test_servers_are_approved_and_rejected_also_after_a_failure(site, stoker):
    add_pending(site, "web1", "web2")

    assert stoker("server", "approve", "web1").out == "server web1 approved\n"
    refused = stoker("server", "reject", "--all")
    assert (refused.code, "server web2 not deleted" in refused.err) == (2, True)
    assert stoker("server", "reject", "--all", "--yes").out == "server web2 deleted\n"
    assert stoker("server", "approve", "--all").err == "no server waits for approval\n"
    assert stoker("server", "reject", "web1", "--yes").code == 5
    assert stoker("server", "approve", "web9").code == 4
    add_pending(site, "web3")
    several = stoker("server", "approve", "web9", "web1", "web3")
    assert (several.code, several.out, len(several.err.splitlines())) == (1, "server web3 approved\n", 2)
    add_pending(site, "web4")
    assert stoker("server", "approve", "--all").out == "server web4 approved\n"


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
    refused = stoker("server", "upgrade", "web1", "--canary", "0")
    assert (refused.code, "--canary is a number of servers" in refused.err) == (2, True)
    assert stoker("server", "upgrade", "web1").code == 0
    configs = stoker("config", "list", "-o", "json").data
    assert [config["group"] for config in configs if config["name"] == "agent-upgrade"] == ["agent"]


def test_facts_are_listed_with_their_values(site, stoker):
    for name in ("web1", "web2"):
        site.add_agent(name)
    assert stoker("server", "label", "web1", "web2", "tier=web").code == 0
    rows = {row["name"]: row for row in stoker("server", "facts", "-o", "json").data}
    assert rows["tier"]["values"] == ["web (2)"]
    assert "web (2)" in stoker("server", "facts").out
