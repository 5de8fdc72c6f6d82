"""A law of stacks, for any templates, in any state: an update ends where a fresh create ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from support.stacks import World
from support.templates import config, define, deployment, server, template

pytestmark = pytest.mark.slow

NAMES = ("a", "b", "c", "d")


@st.composite
def templates(draw: Any) -> dict[str, Any]:
    """Some deployments of some configs on two servers, each after or fed by earlier ones."""
    texts = draw(st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=2))
    resources: dict[str, Any] = {f"config{i}": config(text, outputs=("result",)) for i, text in enumerate(texts)}
    resources |= {"server0": server("first"), "server1": server("second")}
    chosen = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    for i, name in enumerate(chosen):
        properties: dict[str, Any] = {"signal_transport": draw(st.sampled_from(["HEAT_SIGNAL", "NO_SIGNAL"]))}
        properties["actions"] = draw(
            st.sampled_from([["CREATE", "UPDATE"], ["CREATE"], ["CREATE", "UPDATE", "DELETE"]])
        )
        after = tuple(draw(st.sets(st.sampled_from(chosen[:i]))) if i else ())
        if after and draw(st.booleans()):
            properties["input_values"] = {"x": {"get_attr": [sorted(after)[0], "result"]}}
        resources[name] = deployment(
            f"config{draw(st.integers(0, len(texts) - 1))}",
            f"server{draw(st.integers(0, 1))}",
            after=tuple(sorted(after)),
            **properties,
        )
    if draw(st.booleans()):
        resources["group"] = draw(groups(chosen))
    return template(resources)


@st.composite
def groups(draw: Any, chosen: list[str]) -> dict[str, Any]:
    """A stack in the stack: some deployments made alike, perhaps in batches, perhaps after another one."""
    made: dict[str, Any] = define(
        "OS::Heat::ResourceGroup",
        count=draw(st.integers(0, 3)),
        resource_def=deployment(
            "config0", "server0", signal_transport=draw(st.sampled_from(["HEAT_SIGNAL", "NO_SIGNAL"]))
        ),
    )
    if draw(st.booleans()):
        made["update_policy"] = {"rolling_update": {"max_batch_size": 1}, "batch_create": {"max_batch_size": 2}}
    if chosen and draw(st.booleans()):
        made["depends_on"] = [chosen[0]]
    return made


#: What happens between two updates: which waiting ones answer, and how.
answers = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, 1])), max_size=4)


def answer(heat: World, given_answers: list[tuple[int, int]]) -> None:
    for index, code in given_answers:
        if waiting := heat.running():
            heat.report(waiting[index % len(waiting)], deploy_status_code=code, result="r")


def shape(heat: World, stack: Any) -> dict[str, Any]:
    """What a stack is, without ids and history: the type, the status and the requirements of each resource."""
    return {name: (each.type, each.status.value, sorted(each.requires)) for name, each in heat.resources(stack).items()}


@settings(max_examples=examples(15))
@given(first=templates(), between=answers, last=templates(), steps=st.sampled_from([2, 500]))
def test_an_update_in_any_state_ends_where_a_fresh_create_ends(fresh, first, between, last, steps):
    updated = fresh(steps)
    stack = updated.create(first)
    answer(updated, between)
    updated.update(stack, last)
    stack = updated.complete(stack, result="r")

    created = fresh(steps)
    other = created.complete(created.create(last), result="r")
    seen = created.events(other)
    for name, each in created.resources(other).items():
        for need in each.requires:
            assert seen.index((need, "CREATE_COMPLETE")) < seen.index((name, "CREATE_IN_PROGRESS"))
    assert (stack.action, stack.status.value) == ("UPDATE", "COMPLETE"), stack.reason
    assert shape(updated, stack) == shape(created, other)
    assert updated.leftovers(stack) == []
    assert len(updated.deployments()) == len(created.deployments())
    assert updated.work.jobs == []
