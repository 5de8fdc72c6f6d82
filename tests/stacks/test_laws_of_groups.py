"""Laws of groups in batches: whatever fails, in whatever order, counts are right and nothing runs twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.store import configs
from support.search import examples
from support.stacks import World
from support.templates import config, deployment_group, server, template

pytestmark = pytest.mark.slow

SERVERS = "abcdefg"


def fleet(count: int, script: str, policy: dict[str, Any]) -> dict[str, Any]:
    resources: dict[str, Any] = {name: server(name) for name in SERVERS[:count]}
    resources |= {"config": config(script), "health": config("health")}
    servers = {name: {"get_resource": name} for name in SERVERS[:count]}
    resources["group"] = deployment_group(servers=servers, signal_transport="HEAT_SIGNAL")
    resources["group"]["update_policy"] = {"batch_create": policy, "rolling_update": policy}
    return template(resources, outputs={"failed": {"value": {"get_attr": ["group", "failed_members"]}}})


@dataclass
class Seen:
    """What ran, in the order in which it was seen under way: a member's name and its script."""

    began: list[tuple[str, str]] = field(default_factory=list)
    most: int = 0


def finish(heat: World, stack: Any, failing: set[tuple[str, str]], order: Any) -> Seen:
    """Answer one at a time, whichever; ``failing``: names and scripts."""
    seen, known = Seen(), set()
    while True:
        inner = heat.nested(stack, "group")
        names = {each.id: each.name for each in (*heat.resources(inner).values(), *heat.leftovers(inner))}
        waiting = heat.running()
        if not waiting:
            return seen
        said = []
        for each in waiting:
            said.append((names[each.resource_id], heat.config_of(each).config))
            if each.config_id not in known:
                known.add(each.config_id)
                seen.began.append(said[-1])
        seen.most = max(seen.most, len(waiting))
        index = order.draw(st.integers(0, len(waiting) - 1))
        heat.report(waiting[index], deploy_status_code=int(said[index] in failing))


def turns(count: int, policy: dict[str, Any]) -> list[str]:
    names = SERVERS[:count]
    first, size = names[: policy["canary"]], policy["max_batch_size"]
    rest = names[len(first) :]
    return [*([first] if first else []), *(rest[at : at + size] for at in range(0, len(rest), size))]


def expected(count: int, policy: dict[str, Any], broken: set[str], ill: set[str]) -> tuple[set[str], list[str], str]:
    """Who failed, the batches that had their turn, and who was in the one that was too much."""
    borne = int(count * policy["max_fail_percentage"] // 100)
    failed: set[str] = set()
    had = []
    for batch in turns(count, policy):
        had.append(batch)
        for those in (broken, ill if "health_check" in policy else set()):
            new = {name for name in batch if name in those and name not in failed}
            failed |= new
            if new and len(failed) > borne:
                return failed, had, batch
    return failed, had, ""


names = st.sets(st.sampled_from(SERVERS), max_size=3)


@st.composite
def policies(draw: Any) -> dict[str, Any]:
    said: dict[str, Any] = {
        "max_batch_size": draw(st.integers(1, 4)),
        "canary": draw(st.integers(0, 3)),
        "max_fail_percentage": draw(st.sampled_from([0, 0, 15, 30, 50, 100])),
        "on_failure": draw(st.sampled_from(["FAIL", "ROLLBACK"])),
    }
    if draw(st.booleans()):
        said["health_check"] = {"get_resource": "health"}
    return said


@settings(max_examples=examples(12))
@given(
    count=st.integers(1, len(SERVERS)),
    policy=policies(),
    first=st.tuples(names, names),
    second=st.tuples(names, names),
    steps=st.sampled_from([1, 500]),
    order=st.data(),
)
def test_group_counts_are_right_and_nothing_runs_twice(fresh, count, policy, first, second, steps, order):
    heat = fresh(steps)
    stack = heat.create(fleet(count, "one", policy))
    whole = look(heat, stack, count, policy, "one", first, order, set(SERVERS[:count]))

    before = scripts(heat, stack)
    stack = heat.update(stack, fleet(count, "two", policy))
    if not whole:
        # Whoever is left over from the failure is done with: laws of that are those of any update.
        finish(heat, stack, set(), order)
        assert str(heat.settled(stack.id).status) == "COMPLETE", heat.settled(stack.id).reason
        assert set(scripts(heat, stack).values()) == {"two"}
        assert set(scripts(heat, stack)) == set(SERVERS[:count])
    else:
        assert set(before.values()) == {"one"}
        look(heat, stack, count, policy, "two", second, order, set())

    heat.delete(stack)
    assert heat.deployments() == []


def look(heat, stack, count, policy, script, faults, order, new) -> bool:
    """One action on a group that was whole before, or was not there; whether it is whole after it."""
    broken, ill = ({name for name in those if name in SERVERS[:count]} for those in faults)
    failing = {(name, script) for name in broken} | {(f"{name}.health", "health") for name in ill}
    seen = finish(heat, stack, failing, order)
    stack = heat.settled(stack.id)
    failed, had, too_much = expected(count, policy, broken, ill)
    gone_back = policy["on_failure"] == "ROLLBACK" and too_much

    assert str(stack.status) == ("FAILED" if too_much else "COMPLETE"), stack.reason
    ran = [each for each in seen.began if each[1] == script]
    assert sorted(ran) == sorted((name, script) for batch in had for name in batch)
    checks = [name for name, said in seen.began if said == "health"]
    assert len(checks) == len(set(checks))
    again = [each for each in seen.began if each[1] not in (script, "health")]
    assert sorted(again) == (sorted((name, "one") for name in too_much) if gone_back and not new else [])
    assert seen.most <= max(policy["max_batch_size"], policy["canary"]) * 2  # of a failed batch, also what still ends

    said = set(heat.outputs(stack)["failed"])
    if policy["max_fail_percentage"] * count >= 100 or not too_much:
        assert said == failed
    else:
        assert said <= failed  # the first one ends it, whoever else would have failed
        assert said
    if not too_much:
        reason = heat.resources(stack)["group"].reason
        assert reason.startswith(f"{len(failed)} of {count} members failed" if failed else "state changed")
    now = scripts(heat, stack)
    for batch in turns(count, policy):
        for name in batch:
            begun = batch in had and not (gone_back and batch == too_much)
            assert now.get(name) == (script if begun else None if name in new else "one")
    return not failed


def scripts(heat: World, stack: Any) -> dict[str, str]:
    """What each member has been told to run last."""
    found = {}
    for name, each in heat.resources(heat.nested(stack, "group")).items():
        if not name.endswith(".health"):
            found[name] = heat.read(configs.get, each.properties["config"], "p").config
    return found
