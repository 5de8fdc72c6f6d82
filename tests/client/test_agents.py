"""Approval of servers, upgrades of agents and stored hooks on the command line."""

import base64
import json

import pytest

pytestmark = pytest.mark.slow


def test_approve_and_reject_name_the_servers(heat, stoker):
    for name in ("web1", "web2"):
        heat.add_server(name, "PENDING_APPROVAL")

    assert stoker("server", "approve", "web1").out == "server web1 approved\n"
    refused = stoker("server", "reject", "--all")
    assert (refused.code, "server web2 not deleted" in refused.err) == (2, True)
    assert stoker("server", "reject", "--all", "--yes").out == "server web2 deleted\n"
    assert stoker("server", "approve", "--all").err == "no server waits for approval\n"
    assert stoker("server", "reject", "web1", "--yes").code == 5
    assert stoker("server", "approve", "web9").code == 4
    assert stoker("server", "approve").code == 2
    assert stoker("server", "approve", "--all", "web1").code == 2


def test_upgrade_accepts_names_and_beginnings_of_ids(heat, stoker):
    web1, web2 = heat.add_server("web1"), heat.add_server("web2")

    assert stoker("server", "upgrade", web1["id"][:8], "web2", "--canary", "10%").code == 0
    assert heat.bodies[-1][2] == {"servers": [web1["id"], web2["id"]], "canary": 1, "pause_on_failure": False}
    shown = stoker("server", "upgrade", "--status", web1["id"][:8], "-o", "json")
    assert [upgrade["server_name"] for upgrade in json.loads(shown.out)] == ["web1"]
    assert stoker("server", "upgrade", "--status", "web9").code == 4
    assert stoker("server", "upgrade", "--cancel", "web1").out == "upgrade of server web1 cancelled\n"
    assert stoker("server", "upgrade", "--cancel", "web1").code == 5


@pytest.mark.parametrize("options", [(), ("web1", "--canary", "0"), ("--status", "--cancel"), ("web1", "-l", "a=b")])
def test_upgrade_refuses_options_that_do_not_go_together(heat, stoker, options):
    assert stoker("server", "upgrade", *options).code == 2


def test_hook_show_writes_the_file(heat, stoker, nowhere):
    content = base64.b64encode(b"#!/bin/sh\n").decode()
    heat.hooks["shout/1"] = {"name": "shout", "version": 1, "content": content}

    assert stoker("hook", "show", "shout/1", "--file", "shout").code == 0
    assert (nowhere / "shout").read_bytes() == b"#!/bin/sh\n"
    missing = stoker("hook", "show", "shout/1", "--file", "nowhere/shout")
    assert missing.code == 2
    assert missing.err == "stoker: cannot write nowhere/shout (named by --file): No such file or directory\n"
    assert stoker("hook", "show", "shout/1", "-o", "name").out == "shout/1\n"
    assert stoker("hook", "show", "shout/2").code == 4
    assert stoker("hook", "show", "shout").code == 2
