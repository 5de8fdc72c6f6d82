"""Deleting always empties."""

from __future__ import annotations

import json

import pytest

from stoker.store import configs
from support.templates import chain, config, define, deployment, server, template

BASE = {"config": config(), "server": server(), "d": deployment()}


@pytest.mark.parametrize("answered", [0, 1, 3])
def test_a_stack_in_any_state_is_deleted_completely(heat, answered):
    stack = heat.create(chain(3))
    for i in range(answered):
        stack = heat.signal(stack, f"d{i}")
    stack = heat.delete(stack)

    assert (stack.action, stack.status) == ("DELETE", "COMPLETE")
    assert stack.deleted_at is not None
    assert heat.resources(stack) == {}
    assert heat.deployments() == []
    assert heat.work.jobs == []
    assert heat.read(configs.count, "p") == 0


COMPONENT = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "word"}],
    configs=[{"actions": [action], "config": f"echo {action}", "tool": "script"} for action in ("CREATE", "DELETE")],
)


@pytest.mark.parametrize("is_config_deleted", [False, True])
@pytest.mark.parametrize("source", [config("echo DELETE", inputs=("word",)), COMPONENT], ids=["config", "component"])
def test_a_delete_action_runs_before_the_deletion_and_is_retried_after_a_failure(heat, source, is_config_deleted):
    run = deployment(actions=["CREATE", "DELETE"], input_values={"word": "x"})
    stack = heat.signal(heat.create(template({**BASE, "config": source, "d": run})), "d")
    if is_config_deleted:
        heat.store.write(lambda tx: configs.delete(tx, heat.resources(stack)["config"].physical_id))
    stack = heat.delete(stack)
    assert heat.states(stack) == {**dict.fromkeys(BASE, "CREATE_COMPLETE"), "d": "DELETE_IN_PROGRESS"}
    ((_, body),) = heat.to_run(heat.resources(stack)["server"].physical_id)
    run = json.loads(body)
    assert "echo DELETE" in json.dumps(run["config"])
    inputs = {each["name"]: each["value"] for each in run["inputs"]}
    assert (inputs["deploy_action"], inputs["word"]) == ("DELETE", "x")

    stack = heat.signal(stack, "d", deploy_status_code=1)
    assert (stack.action, stack.status) == ("DELETE", "FAILED")
    heat.delete(stack)
    stack = heat.signal(stack, "d")
    assert (stack.status, heat.resources(stack)) == ("COMPLETE", {})
