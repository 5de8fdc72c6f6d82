"""Names, patterns and prefixes of ids on the command line, and commands for several servers."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

TEMPLATE = """\
heat_template_version: 2018-08-31
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {group: script, config: echo}}
  install:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: SERVER, signal_transport: STOKER_SIGNAL}
"""


@pytest.fixture
def agent(site):
    """The agent of the server ``web1``, with a stack ``web``, and a config ``setup``."""
    agent = site.add_agent("web1")
    site.act(agent, lambda agent, run: agent.finish(run["id"], deploy_stdout="from the stack\n"))
    site.create_stack("web", TEMPLATE.replace("SERVER", agent.id))
    site.account.create_config(name="setup")
    return agent


def test_names_prefixes_and_stack_resources_replace_ids(site, stoker, agent):
    config = stoker("config", "show", "setup", "-o", "json").data
    words = ("--config", config["id"][:8], "--server", agent.id[:13], "--name", "by hand", "--wait")
    made = stoker("deployment", "create", *words, "-o", "json").data
    assert made["server_id"] == agent.id
    for ref in ("by hand", made["id"], made["id"][:8]):
        assert stoker("deployment", "show", ref, "-o", "json").data["id"] == made["id"]
    assert stoker("deployment", "logs", "web/install").out == "from the stack\n"
    assert stoker("deployment", "logs", "web/config").err.startswith(
        "stoker: web/config is not a deployment but an OS::"
    )
    stack_id = stoker("stack", "show", "web", "-o", "json").data["id"]
    assert stoker("stack", "resources", stack_id[:8]).code == 0
    taken = stoker("snapshot", "create", "web", "before", "-o", "json").data
    assert stoker("snapshot", "delete", "--yes", stack_id[:8], taken["id"][:8]).code == 0

    words = ("--config", "setup", "--on", agent.id[:8], "--name", "n", "-f")
    begun = stoker("trigger", "create", *words, "-o", "json").data
    for ref in ("n", begun["id"][:8]):
        assert stoker("trigger", "show", ref, "-o", "json").data["id"] == begun["id"]
    assert stoker("trigger", "web/install", "-f").code == 0
    begun = stoker("trigger", "web/install", "--on", "w*1", "-f", "-o", "json").data
    assert [target["server_name"] for target in begun["targets"]] == ["web1"]


def test_lists_are_selected_by_status(stoker, agent):
    columns = ("-o", "csv", "-c", "name", "-c", "server", "-c", "requested_by")
    for words, lines in (
        (("stack", "list", "--status", "complete", "-o", "name"), ["web"]),
        (("stack", "list", "--status", "CREATE_FAILED", "-o", "name"), []),
        (("stack", "resources", "web", "--status", "create_complete", "-o", "name"), ["config", "install"]),
        (("server", "list", "--status", "online", "-o", "name"), ["web1"]),
        (
            ("deployment", "list", "--status", "complete", *columns),
            ["name,server,requested_by", "web/install,web1,the stack"],
        ),
        (("deployment", "list", "--status", "failed", "-o", "value"), []),
        (("deployment", "show", "web/install", "-o", "value", "-c", "stack_name"), ["web"]),
    ):
        assert stoker(*words).out.splitlines() == lines, words
    begun = stoker("trigger", "create", "--config", "setup", "--on", "web1", "-f", "-o", "json").data
    assert "web1" in stoker("trigger", "show", begun["id"], "--status", "complete").out
    assert "web1" not in stoker("trigger", "show", begun["id"], "--status", "failed").out
    wrong = stoker("server", "list", "-c", "nope")
    assert (wrong.code, "there is no column 'nope'; there are id, name, status" in wrong.err) == (2, True)


def test_many_servers_are_labeled_configured_and_deleted_at_once(site, stoker):
    for name in ("bulk1", "bulk2"):
        site.api("POST", "/servers", {"name": name})
    labeled = "server bulk1 labeled\nserver bulk2 labeled\n"
    assert stoker("server", "label", "bulk1", "bulk2", "pool=bulk").out == labeled
    assert stoker("server", "label", "--label", "pool=bulk", "site=north").code == 0
    assert stoker("server", "label", "bulk2", "pool=bulk", "site-").code == 0
    labels = {row["name"]: row["labels"] for row in stoker("server", "list", "--label", "pool=bulk", "-o", "json").data}
    assert labels == {"bulk1": {"pool": "bulk", "site": "north"}, "bulk2": {"pool": "bulk"}}
    assert "pool=bulk" in stoker("server", "list").out
    done = stoker("server", "policy", "--label", "pool=bulk", "--max-concurrent", "2")
    assert done.out == "policy of server bulk1 set\npolicy of server bulk2 set\n"
    shown = stoker("server", "policy", "--label", "pool=bulk", "-o", "json").data
    assert [each["policy"]["max_concurrent_runs"] for each in shown] == [2, 2]
    assert stoker("server", "label", "bulk?", "rack=7").out == labeled
    none = stoker("server", "delete", "bulk[3-9]", "--yes")
    message = "stoker: no server's name matches 'bulk[3-9]'; `stoker server list` lists them\n"
    assert (none.code, none.err) == (4, message)

    refused = stoker("server", "delete", "--label", "pool=bulk")
    assert (refused.code, "use --yes" in refused.err) == (2, True)
    deleted = stoker("server", "delete", "--label", "pool=bulk", "--yes")
    assert deleted.out == "server bulk1 deleted\nserver bulk2 deleted\n"
    assert stoker("server", "list", "-o", "name").out == ""
