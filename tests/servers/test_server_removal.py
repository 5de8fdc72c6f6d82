"""A server is removed while there is something to run on it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from stoker.deployments import server_runs
from stoker.deployments.run_end import DEADLINE
from stoker.model.server import Kind, Server
from stoker.servers import enrollment
from stoker.stacks.operations import Options
from stoker.store import deployments, servers
from support.fleet import Fleet
from support.stacks import world
from support.templates import config, define, deployment, template

ID = "00000000-0000-4000-8000-000000000001"


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
def test_the_next_update_reaches_a_new_server_of_the_same_name(store, value):
    heat = world(store)

    def enroll(tx: Any) -> Server:
        server = Server(
            id=str(uuid4()), project_id="p", name="web1", kind=Kind.ENROLLED, key_generation=1, created_at=tx.now
        )
        servers.add(tx, server)
        return server

    def content(value: str) -> dict[str, Any]:
        machine = define("OS::Heat::DeployedServer", name="web1")
        return template(
            {"machine": machine, "config": config(), "d": deployment(server="machine", input_values={"a": value})}
        )

    old = heat.store.write(enroll)
    stack = heat.signal(heat.create(content("1")), "d")
    assert stack.status == "COMPLETE"
    heat.store.write(lambda tx: servers.delete(tx, old.id))
    new = heat.store.write(enroll)
    heat.update(stack, content(value))
    ((_, body),) = heat.to_run(new.id)
    inputs = {entry["name"]: entry["value"] for entry in json.loads(body)["inputs"]}
    assert (inputs["deploy_action"], inputs["a"]) == ("CREATE", value)
    assert heat.signal(heat.settled(stack.id), "d").status == "COMPLETE"


def test_runs_on_a_removed_server_have_failed(store):
    heat = world(store)
    heat.store.write(
        lambda tx: servers.add(
            tx, Server(id=ID, project_id="p", name="web1", kind=Kind.ENROLLED, created_at=datetime.now(UTC))
        )
    )
    kept = heat.create(two(ID), "kept")
    back = heat.create(two(ID), "back", options=Options(disable_rollback=False))
    fleet = Fleet(heat)
    trigger = fleet.trigger(config_id=fleet.config(), servers=[ID])

    def remove(tx: Any) -> None:
        server_runs.release_server(tx, heat.work, ID, "web1")
        enrollment.remove(tx, servers.get(tx, ID, "p"))

    heat.store.write(remove)
    heat.work.run(DEADLINE)
    assert heat.settled(kept.id).status == "FAILED"
    assert "Server web1 was removed" in heat.settled(kept.id).reason
    assert (heat.settled(back.id).action, heat.settled(back.id).status) == ("ROLLBACK", "COMPLETE")
    assert fleet.now(trigger).status == "FAILED"
    assert {each.status for each in heat.read(deployments.list_all, "p")} == {"FAILED"}
    assert heat.work.jobs == []
