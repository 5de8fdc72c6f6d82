"""A server is removed while there is something to run on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.deployments import server_runs
from stoker.deployments.run_end import DEADLINE
from stoker.servers import enrollment
from stoker.stacks.operations import Options
from stoker.store import deployments, servers
from support.templates import config, define, deployment, template


def two(server: str) -> dict[str, Any]:
    """Deployments that wait for each other's end, to a server that is no part of the template."""
    made = {"config": config(), "a": deployment(timeout=60), "b": deployment(timeout=60)}
    for each in ("a", "b"):
        made[each]["properties"]["server"] = server
    return template(made)


@pytest.mark.filterwarnings("ignore")
def test_a_rollback_after_the_removal_does_not_restore_the_server(site):
    id = site.call("POST", "/servers", {"name": "web1"})["server"]["id"]
    site.create_stack("s", two(id), disable_rollback=False)
    site.call("DELETE", f"/servers/{id}")
    site.call("GET", f"/servers/{id}", status=404)


@pytest.mark.filterwarnings("ignore")
def test_a_server_that_a_stack_represents_cannot_be_removed(site):
    id = site.call("POST", "/servers", {"name": "web1"})["server"]["id"]
    machine = define("OS::Heat::DeployedServer", name="web1")
    stack = site.create_stack("shop", template({"machine": machine}))
    refused = site.call("DELETE", f"/servers/{id}", status=409)["error"]["message"]
    assert "The resource machine of stack shop represents server 'web1'" in refused
    assert "stoker server enroll web1 --again" in refused
    site.call("DELETE", stack)
    site.call("DELETE", f"/servers/{id}")


@pytest.mark.parametrize("value", ["1", "2"])
def test_the_next_update_reaches_a_new_server_of_the_same_name(heat, fleet, value):
    def content(value: str) -> dict[str, Any]:
        machine = define("OS::Heat::DeployedServer", name="web1")
        return template(
            {"machine": machine, "config": config(), "d": deployment(server="machine", input_values={"a": value})}
        )

    [old] = fleet.enroll("web1")
    stack = heat.signal(heat.create(content("1")), "d")
    assert stack.status == "COMPLETE"
    heat.store.write(lambda tx: servers.delete(tx, old.id))
    [new] = fleet.enroll("web1")
    heat.update(stack, content(value))
    ((_, body),) = heat.to_run(new.id)
    inputs = {entry["name"]: entry["value"] for entry in json.loads(body)["inputs"]}
    assert (inputs["deploy_action"], inputs["a"]) == ("CREATE", value)
    assert heat.signal(heat.settled(stack.id), "d").status == "COMPLETE"


def test_runs_on_a_removed_server_have_failed(heat, fleet):
    [server] = fleet.enroll("web1")
    kept = heat.create(two(server.id), "kept")
    back = heat.create(two(server.id), "back", options=Options(disable_rollback=False))
    trigger = fleet.trigger(config_id=fleet.config(), servers=[server.id])

    def remove(tx: Any) -> None:
        server_runs.release_server(tx, heat.work, server.id, server.name)
        enrollment.remove(tx, servers.get(tx, server.id, "p"))

    heat.store.write(remove)
    heat.work.run(DEADLINE)
    assert heat.settled(kept.id).status == "FAILED"
    assert "Server web1 was removed" in heat.settled(kept.id).reason
    assert (heat.settled(back.id).action, heat.settled(back.id).status) == ("ROLLBACK", "COMPLETE")
    assert fleet.now(trigger).status == "FAILED"
    assert {each.status for each in heat.read(deployments.list_all, "p")} == {"FAILED"}
    assert heat.work.jobs == []
