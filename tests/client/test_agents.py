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


def test_upgrade_accepts_names_and_beginnings_of_ids(site, stoker):
    web1, web2 = site.add_agent("web1"), site.add_agent("web2")

    assert stoker("server", "upgrade", web1.id[:8], "web2", "--canary", "10%").code == 0
    assert site.bodies[-1][2] == {"servers": [web1.id, web2.id], "canary": "10%", "pause_on_failure": False}
    shown = stoker("server", "upgrade", "--status", web1.id[:8], "-o", "json")
    assert [upgrade["server_name"] for upgrade in json.loads(shown.out)] == ["web1"]
    assert stoker("server", "upgrade", "--status", "web9").code == 4
    assert stoker("server", "upgrade", "--cancel", "web1").out == "upgrade of server web1 cancelled\n"
    assert stoker("server", "upgrade", "--cancel", "web1").code == 5


def test_upgrades_are_shown_in_every_format(site, stoker):
    site.add_agent("web1")
    site.add_agent("web2")
    upgraded = stoker("server", "upgrade", "web1", "web2", "--pause-on-failure", "-o", "csv", "-c", "server_name")
    assert (upgraded.code, upgraded.out) == (0, "server_name\nweb1\nweb2\n")
    assert site.bodies[-1][2]["pause_on_failure"] is True
    words = ("-o", "value", "-c", "server_name", "-c", "status", "--limit", "1")
    assert stoker("server", "upgrade", "--status", *words).out.startswith("web1\t")
    assert "Server Name" in stoker("server", "upgrade", "--status").out
    cancelled = stoker("server", "upgrade", "--cancel", "web9", "web2")
    assert (cancelled.code, cancelled.out) == (4, "upgrade of server web2 cancelled\n")


def test_approval_continues_after_a_failure(site, stoker):
    add_pending(site, "web1")
    site.add_agent("web2")
    result = stoker("server", "approve", "web9", "web2", "web1")
    assert (result.code, result.out) == (1, "server web1 approved\n")
    assert len(result.err.splitlines()) == 2
    add_pending(site, "web3")
    assert stoker("server", "approve", "--all").out == "server web3 approved\n"
