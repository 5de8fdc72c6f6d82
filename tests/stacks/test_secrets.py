"""What hidden parameters hold reaches the agent, and nobody else."""

from __future__ import annotations

import pytest

from stoker.stacks.operations import Options
from stoker.store import configs, deployments, stacks
from support.stacks import values
from support.templates import config, define, deployment, deployment_group, server, template

WORD, STARS = "s3cret-word", "******"
GIVEN = {
    "word": {"get_param": "password"},
    "url": {"str_replace": {"template": "db://u:$p@h", "params": {"$p": {"get_param": "password"}}}},
    "list": [{"get_param": "password"}],
    "short": "s3",
    "plain": "open",
}


@pytest.fixture
def stack(heat):
    resources = {"config": config(inputs=tuple(GIVEN)), "server": server(), "run": deployment(input_values=GIVEN)}
    said = template(resources)
    said["parameters"] = {"password": {"type": "string", "hidden": True}}
    return heat.create(said, parameters={"password": WORD})


def told(heat, stack):
    """What the agent is to run, by name of input."""
    return values(heat.entry(heat.resources(stack)["server"].physical_id)["inputs"])


def of_run(heat, stack):
    found = heat.read(deployments.get, heat.resources(stack)["run"].physical_id)
    return found, found.run


def test_a_run_gets_a_secret_that_its_history_redacts_and_the_next_update_uses(heat, stack):
    clear = {"word": WORD, "url": f"db://u:{WORD}@h", "list": [WORD], "short": "s3", "plain": "open"}
    assert {name: told(heat, stack)[name] for name in clear} == clear
    found, run = of_run(heat, stack)
    starred = {"word": STARS, "url": STARS, "list": STARS, "short": "s3", "plain": "open"}
    assert found.input_values == run.input_values == starred
    heat.signal(stack, "run")
    assert of_run(heat, stack)[1].input_values == starred
    again = heat.change(stack, parameters={"password": WORD})
    assert again.status == "COMPLETE", "nothing changed"
    changed = heat.change(stack, parameters={"password": "another-word"})
    assert told(heat, changed)["word"] == "another-word"
    assert of_run(heat, changed)[0].input_values["word"] == STARS


def test_a_trigger_redacts_a_secret(heat, fleet, stack):
    heat.signal(stack, "run")
    trigger = fleet.trigger(stack=stack.id, resource="run", action="BACKUP", input_values={"plain": "mine"})
    assert told(heat, stack)["word"] == WORD
    (made,) = fleet.running(trigger)
    assert (made.input_values["word"], made.input_values["plain"]) == (STARS, "mine")
    fleet.end(made, 1)
    once_more = fleet.trigger(deployment_id=made.id, action="BACKUP")
    assert told(heat, stack)["url"] == f"db://u:{WORD}@h"
    assert fleet.running(once_more)[0].input_values["url"] == STARS


INNER = """
heat_template_version: 2018-08-31
parameters: {word: {type: string}, id: {type: string}}
resources:
  c: {type: OS::Heat::SoftwareConfig, properties: {config: x, inputs: [{name: word}]}}
  d:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: c}, server: {get_param: id}, input_values: {word: {get_param: word}}}
"""
WORD_GIVEN = {"word": {"get_param": "password"}}
GROUP = deployment_group(servers={"one": {"get_resource": "server"}}, input_values=WORD_GIVEN)
NESTED = define("inner.yaml", id={"get_resource": "server"}, word={"get_param": "password"})


def hidden(resources, **more):
    said = template({"config": config(inputs=("word",)), "server": server(), **resources}, **more)
    return {**said, "parameters": {"password": {"type": "string", "hidden": True}}}


def shown(heat):
    """What is shown of the only deployment, of its last run, of its config."""
    (found,) = heat.deployments()
    with heat.store.read() as tx:
        run = deployments.get(tx, found.id).run
        made = configs.get(tx, found.config_id, "p")
    marks = [each.get("secret") for each in made.inputs if each["name"] == "word"]
    return found.input_values["word"], run.input_values["word"], marks


@pytest.mark.parametrize("inside", [GROUP, NESTED])
def test_a_nested_stack_and_a_trigger_of_it_redact_a_secret(heat, fleet, inside):
    files = {"inner.yaml": INNER}
    stack = heat.create(hidden({"inside": inside}), parameters={"password": WORD}, files=files)
    assert shown(heat) == (STARS, STARS, [True])
    assert told(heat, stack)["word"] == WORD
    heat.report(heat.deployments()[0])
    assert heat.settled(stack.id).status == "COMPLETE"

    changed = heat.change(stack, parameters={"password": "another-word"})
    assert changed.status == "IN_PROGRESS"
    assert shown(heat) == (STARS, STARS, [True]), "by what the parameter is in this very transaction"
    (member,) = heat.deployments()
    heat.report(member)
    assert heat.settled(stack.id).status == "COMPLETE"

    (made,) = fleet.running(fleet.trigger(deployment_id=member.id, action="BACKUP"))
    assert made.input_values["word"] == STARS


def test_a_rollback_uses_the_previous_secret(heat):
    """The update fails and its rollback begins runs in one transaction."""
    plain = {"run": deployment(input_values=WORD_GIVEN), "late": deployment(after=("run",), input_values=WORD_GIVEN)}
    stack = heat.create(hidden({"run": plain["run"]}), parameters={"password": WORD})
    heat.signal(stack, "run")
    heat.update(stack, hidden(plain), options=Options(disable_rollback=False), parameters={"password": "another-word"})
    heat.signal(stack, "run", deploy_status_code=1)
    (found,) = heat.deployments()
    assert heat.read(stacks.get, stack.id).action == "ROLLBACK"
    assert (told(heat, stack)["word"], found.status) == (WORD, "IN_PROGRESS")
    assert shown(heat) == (STARS, STARS, [True])
