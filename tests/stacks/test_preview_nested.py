"""What an update would do, as deep as stacks go."""

from __future__ import annotations

import json

import pytest

from stoker.model.errors import Invalid
from support.stacks import World
from support.templates import config, define, template


def value(said: object) -> dict:
    return define("OS::Heat::Value", value=said)


def inner(**resources: dict) -> str:
    return json.dumps(
        template(
            {"kept": value("k"), "fed": value({"get_param": "word"}), **resources},
            parameters={"word": {"type": "string"}},
        )
    )


def outer(word: object = "a", **resources: dict) -> dict:
    middle = define("middle.yaml", word=word)
    return template({"middle": middle, **resources})


MIDDLE = json.dumps(
    template(
        {"deep": define("deep.yaml", word={"get_param": "word"})},
        parameters={"word": {"type": "string"}},
    )
)


def told(heat: World, stack, said: dict, files: dict[str, str]) -> dict[str, str]:
    """Kinds of change by the resource's name."""
    levels, _ = heat.plan(stack, said, files)
    for level in levels:
        assert {change.resource.stack_id for change in level.changes if change.resource} <= {level.stack.id}
    return {change.name: str(change.kind) for level in levels for change in level.changes}


def test_a_preview_lists_the_changes_of_all_levels_or_the_path_of_an_error(heat) -> None:
    files = {"middle.yaml": MIDDLE, "deep.yaml": inner()}
    stack = heat.create(outer(), files=files)
    same = dict.fromkeys(("middle", "deep", "kept", "fed"), "unchanged")
    assert told(heat, stack, outer(), files) == same
    assert told(heat, stack, outer("b"), files) == {**same, "middle": "updated", "deep": "updated", "fed": "updated"}
    more = {**files, "deep.yaml": inner(more=value(1))}
    seen = told(heat, stack, outer(), more)
    assert (seen["kept"], seen["fed"], seen["more"]) == ("unchanged", "unchanged", "added")
    assert told(heat, stack, template({}), {}) == dict.fromkeys(same, "deleted")
    assert heat.update(stack, outer("b"), files=more).id == stack.id
    with pytest.raises(Invalid, match=r"resources\.middle.*deep"):
        told(heat, stack, outer(), {**files, "deep.yaml": "heat_template_version: 1"})


def test_a_change_that_depends_on_another_is_listed_at_its_resource(heat) -> None:
    files = {"middle.yaml": MIDDLE, "deep.yaml": inner()}
    said = outer({"get_attr": ["first", "value"]}, first=value("a"))
    stack = heat.create(said, files=files)
    changed = outer({"get_attr": ["first", "value"]}, first=value("b"))
    assert told(heat, stack, changed, files) == {"first": "updated", "middle": "updated"}


def test_a_nested_stack_is_planned_with_a_config_that_the_update_creates(heat) -> None:
    """The update brings the nested stack to the new config, so the preview lists what changes inside."""
    given = define("OS::Heat::Value", value={"get_param": "config"})
    files = {"middle.yaml": json.dumps(template({"given": given}, parameters={"config": {"type": "string"}}))}

    def said(text: str) -> dict:
        middle = define("middle.yaml", config={"get_resource": "config"})
        return template({"config": config(text), "middle": middle})

    stack = heat.create(said("a"), files=files)
    assert told(heat, stack, said("b"), files) == {"config": "replaced", "middle": "updated", "given": "updated"}


def test_a_function_in_an_update_policy_is_no_change(heat) -> None:
    definition = define("OS::Heat::Value", value=1)
    group = define("OS::Heat::ResourceGroup", count=2, resource_def=definition) | {
        "update_policy": {"rolling_update": {"max_batch_size": {"get_param": "size"}}}
    }
    text = template({"group": group}, parameters={"size": {"type": "number", "default": 1}})
    stack = heat.create(text)
    assert told(heat, stack, text, {})["group"] == "unchanged"
