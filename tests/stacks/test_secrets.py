"""What hidden parameters hold reaches the agent, and nobody else."""

from __future__ import annotations

import json

import pytest

from stoker.store import deployments, runs
from support.fleet import Fleet
from support.templates import config, deployment, server, template

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
    ((_, body),) = heat.to_run(heat.resources(stack)["server"].physical_id)
    return {each["name"]: each.get("value") for each in json.loads(body)["inputs"]}


def of_run(heat, stack):
    with heat.store.read() as tx:
        found = deployments.get(tx, heat.resources(stack)["run"].physical_id)
        return found, runs.find(tx, found.id, found.config_id)


def test_a_run_is_told_what_its_history_does_not_tell(heat, stack):
    clear = {"word": WORD, "url": f"db://u:{WORD}@h", "list": [WORD], "short": "s3", "plain": "open"}
    assert {name: told(heat, stack)[name] for name in clear} == clear
    found, run = of_run(heat, stack)
    starred = {"word": STARS, "url": STARS, "list": STARS, "short": "s3", "plain": "open"}
    assert found.input_values == run.input_values == starred
    heat.signal(stack, "run")
    assert of_run(heat, stack)[1].input_values == starred


def test_an_update_goes_by_what_is_there_and_not_by_stars(heat, stack):
    heat.signal(stack, "run")
    again = heat.change(stack, parameters={"password": WORD})
    assert again.status == "COMPLETE", "nothing changed"
    changed = heat.change(stack, parameters={"password": "another-word"})
    assert told(heat, changed)["word"] == "another-word"
    assert of_run(heat, changed)[0].input_values["word"] == STARS


def test_a_trigger_keeps_it_too(heat, stack):
    heat.signal(stack, "run")
    fleet = Fleet(heat)
    trigger = fleet.trigger(stack=stack.id, resource="run", action="BACKUP", input_values={"plain": "mine"})
    assert told(heat, stack)["word"] == WORD
    (made,) = fleet.running(trigger)
    assert (made.input_values["word"], made.input_values["plain"]) == (STARS, "mine")
    fleet.end(made, 1)
    once_more = fleet.trigger(deployment_id=made.id, action="BACKUP")
    assert told(heat, stack)["url"] == f"db://u:{WORD}@h"
    assert fleet.running(once_more)[0].input_values["url"] == STARS
