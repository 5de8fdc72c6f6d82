"""Our words for the `openstack` command, beside python-heatclient's own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TEMPLATE = Path(__file__).parents[2] / "examples" / "backup.yaml"
TRIGGER = ("software", "deployment", "trigger", "--stack", "osc-shop", "--resource", "databases", "--action", "BACKUP")


@pytest.fixture(scope="module")
def shop(openstack, stoker):
    """The example, made by Heat's own words."""
    openstack("stack", "create", "osc-shop", "-t", str(TEMPLATE), "--wait", "--poll", "1")
    yield
    openstack("stack", "delete", "osc-shop", "--yes", "--wait")


def test_commands_of_heatclient_and_stoker_are_registered(openstack):
    said = openstack("help", "software", "deployment", "create")
    assert "provided by the python-heatclient plugin" in said
    assert "provided by the stoker-client plugin" in openstack("help", "software", "deployment", "trigger")


def test_a_trigger_from_start_to_end(openstack, shop):
    words = ("--input-value", "label=osc", "--max-concurrent", "2", "--wait", "-f", "json")
    made = openstack(*TRIGGER, *words)

    assert (made["status"], made["action"], made["complete"]) == ("COMPLETE", "BACKUP", 3)
    listed = openstack("software", "trigger", "list", "--stack", "osc-shop", "--limit", "1", "-f", "json")
    assert [each["id"] for each in listed] == [made["id"]]
    shown = openstack("software", "trigger", "show", made["id"], "-f", "json")
    assert {each["server_name"] for each in shown["targets"]} == {"one", "two", "three"}
    assert "BACKUP" in openstack("software", "trigger", "show", made["id"])

    deployment = shown["targets"][0]["deployment_id"]
    [run] = openstack("software", "deployment", "history", deployment, "-f", "json")
    assert (run["number"], run["action"], run["status"], int(run["status_code"])) == (1, "BACKUP", "COMPLETE", 0)
    # To Heat's own words it is a deployment as any other.
    assert openstack("software", "deployment", "show", deployment, "-f", "json")["status"] == "COMPLETE"
    assert "osc: 5 records" in openstack("software", "deployment", "output", "show", deployment, "backup")
    assert "saved record 5" in openstack("software", "deployment", "watch", deployment)
    words = (deployment, "--action", "BACKUP", "--input-value", "label=again", "--wait", "-f", "json")
    again = openstack("software", "deployment", "trigger", *words)
    assert (again["status"], again["total"], again["source"]["deployment_id"]) == ("COMPLETE", 1, deployment)


def test_a_deployment_is_cancelled_by_the_openstack_command(openstack, shop, stoker):
    server = openstack("stack", "resource", "show", "osc-shop", "one", "-f", "json")["physical_resource_id"]
    words = ("--input-value", "label=long", "--input-value", "pause=60", "--server", server, "-f", "json")
    made = openstack(*TRIGGER, *words)
    stoker.until(lambda: bool(list(stoker.state_dir.glob("local/*/home/long.backup.part"))))
    shown = openstack("software", "trigger", "show", made["id"], "-f", "json")
    deployment = shown["targets"][0]["deployment_id"]
    openstack("software", "deployment", "cancel", deployment)

    told = openstack("software", "deployment", "watch", deployment, fails=True)
    assert "FAILED: " in told
    stoker.until(lambda: not list(stoker.state_dir.glob("local/*/home/long.backup.part")))
    assert openstack("software", "trigger", "show", made["id"], "-f", "json")["status"] == "CANCELLED"


def test_errors_are_one_line(openstack, shop):
    gone = "00000000-0000-0000-0000-000000000000"
    assert openstack("software", "trigger", "show", gone, fails=True).strip().count("\n") == 0
    assert gone in openstack("software", "deployment", "cancel", gone, fails=True)
    for words in ((), ("--stack", "osc-shop"), (gone, "--config", gone)):
        refused = openstack("software", "deployment", "trigger", *words, fails=True)
        assert "a trigger needs one of: stack and resource, deployment_id, config_id" in refused
    failed = openstack(*TRIGGER, "--server", "one", "--input-value", "label=no/where", "--wait", fails=True)
    assert "one: exit " in failed
    assert "databases_BACKUP is FAILED" in failed
