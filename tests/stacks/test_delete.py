"""Deleting runs what a deployment has for its deletion; that it always empties is a law of ``test_lifecycle_laws``."""

from __future__ import annotations

import pytest

from stoker.store import configs
from support.stacks import values
from support.templates import config, define, deployment, server, template

BASE = {"config": config(), "server": server(), "d": deployment()}


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
    run = heat.entry(heat.resources(stack)["server"].physical_id)
    assert "echo DELETE" in str(run["config"])
    inputs = values(run["inputs"])
    assert (inputs["deploy_action"], inputs["word"]) == ("DELETE", "x")

    stack = heat.signal(stack, "d", deploy_status_code=1)
    assert (stack.action, stack.status) == ("DELETE", "FAILED")
    heat.delete(stack)
    stack = heat.signal(stack, "d")
    assert (stack.status, heat.resources(stack)) == ("COMPLETE", {})
