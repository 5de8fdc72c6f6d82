"""
Whatever its properties are, said or told by another resource, a resource comes to an end that tells why; so does
everything that is done to it later. Whatever a signal says, it is taken or refused, and what waits for it ends.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker import types
from stoker.deployments import schema
from stoker.model.errors import StokerError
from stoker.model.stack import Action, Status
from stoker.resources.base import WAKE, TakesSignals
from stoker.resources.properties import Property
from stoker.stacks import outputs
from stoker.stacks.engine import DEADLINE
from stoker.stacks.engine.session import all_attributes
from stoker.store import rows
from stoker.store import stacks as stored_stacks
from support.databases import alternate
from support.search import examples
from support.stacks import World, signal_named
from support.templates import HANDLE, define, on, template, wait

pytestmark = pytest.mark.slow

TYPES = types.load()
NAMES = sorted(name for name, kind in TYPES.items() if kind.name == name)

#: What a template, a parameter or an agent may say; the last ones only an agent.
WORDS = [
    "", "a", "0", "1", "-1", "1.5", "nan", "inf", "-inf", "1e400", "9" * 400, "²", "true", "CREATE", "DELETE", "text",
    "x" * 300, "x" * 9_000, "a\nb", "a\r\nX: y", "ä☃", "{}", "[]", "[" * 3_000, '{"a": NaN}', '{"a": "\\u0000"}',
    '"\\ud800"', "a/b", "%index%", "OS::Heat::None", "OS::Heat::Value", "no::such", "component", "12345678" * 4,
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/x; charset=no\n\nx\n--b--",
    "a\0b", "SUCCESS", "FAILURE",
]  # fmt: skip
texts = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
numbers = st.integers(-2, 3) | st.sampled_from(
    [0.0, -0.5, 1.5, 2**31, 2**63, 2**64, 10**15, 10**300, -(10**300), 1e308]
)
scalars = st.none() | st.booleans() | numbers | texts


def _deep(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
) | st.sampled_from(
    [*map(_deep, (60, 150, 240, 260)), [{"name": "a"}] * 2, {"a": "s"}, ["CREATE"], ["DELETE", "SUSPEND"]]
)

_PLAIN = {
    "string": texts,
    "integer": numbers,
    "number": numbers,
    "boolean": st.booleans(),
    "list": st.lists(values, max_size=3),
    "map": st.dictionaries(texts, values, max_size=3),
    "any": values,
}


_types = st.sampled_from([name for name in NAMES if "Group" not in name and "Chain" not in name])
#: What other resources or the world must know.
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "type": _types | st.sampled_from(["OS::Heat::None", "OS::Heat::TestResource", *schema.TYPES]),
    "resources": st.lists(_types, max_size=3),
    "servers": st.dictionaries(st.sampled_from(["a", "b", "c/d", "x" * 300]), st.just("s"), max_size=3),
    "server": st.just("s"),
    "handle": st.just({"get_resource": "h"}),
    "count": st.integers(0, 3),
    "min": st.integers(0, 3),
    "class": st.sampled_from(["digits", "letters"]),
    "signal_transport": st.sampled_from([None, "NO_SIGNAL"]),
    "software_config_transport": st.none(),
    "timeout": st.integers(1, 100),
}


def fitting(wanted: Property, name: str = "") -> st.SearchStrategy[Any]:
    """More or less what the property wants, so that what is made up comes past its schema."""
    right = LIKELY.get(name, _PLAIN[wanted.kind])
    if name in LIKELY:
        pass
    elif wanted.allowed:
        right = st.sampled_from(list(wanted.allowed))
    elif wanted.schema is not None:
        right = _some_of(wanted.schema)
    elif wanted.each is not None:
        right = st.lists(fitting(wanted.each), max_size=3)
    return st.one_of(right, right, right, right, right, values)


def _some_of(schema_of: Any) -> st.SearchStrategy[Any]:
    required = {name: fitting(each, name) for name, each in schema_of.items() if each.required}
    optional = {name: fitting(each, name) for name, each in schema_of.items() if not each.required}
    return st.fixed_dictionaries(required, optional=optional)


def properties_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    if TYPES[kind].properties is None:
        return st.dictionaries(texts, values, max_size=3)
    return _some_of(TYPES[kind].properties)


def routed(data: st.DataObject, properties: dict[str, Any], label: str) -> tuple[Any, dict[str, Any]]:
    """The properties as the template has them, and what the deployment is to report of them."""
    said: dict[str, Any] = {}
    told: dict[str, Any] = {}
    if "handle" not in properties and data.draw(st.integers(0, 9), label=f"{label} all at once") == 0:
        return {"get_attr": ["d", "x"]}, properties
    for index, (name, value) in enumerate(properties.items()):
        if value != {"get_resource": "h"} and data.draw(st.booleans(), label=f"{label} {name} told"):
            told[f"k{index}"] = value
            said[name] = {"get_attr": ["d", "x", f"k{index}"]}
        else:
            said[name] = value
    return said, told


def about(kind: str, properties: Any, policy: Any = None, metadata: Any = None) -> dict[str, Any]:
    config = define("OS::Heat::SoftwareConfig", outputs=[{"name": "x"}])
    teller = {"config": {"get_resource": "c"}, "server": "told", "actions": ["CREATE"]}
    said = define(kind, **properties)
    if policy is not None:
        said["update_policy"] = policy
    if metadata is not None:
        said["metadata"] = metadata
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    return template(
        {"h": handle, "c": config, "d": define("OS::Heat::SoftwareDeployment", **teller), "r": said},
        outputs={
            "id": {"value": {"get_resource": "r"}},
            "all": {"value": {"get_attr": ["r"]}},
            **{name: {"value": {"get_attr": ["r", name]}} for name in TYPES[kind].attributes or ()},
        },
    )


def ended(heat: World, stack: Any, told: Any) -> Any:
    """The stack once everybody has answered that was waited for, or the time is over."""
    for _ in range(4):
        heat.started(stack)
        for name, each in heat.resources(stack).items():
            if each.status is Status.IN_PROGRESS and isinstance(TYPES[each.type], TakesSignals):
                heat.signal(stack, name, **({"x": told} if name == "d" else {}))
        heat.work.run(WAKE) if any(job[0] == WAKE for job in heat.work.jobs) and _once(heat) else None
        if heat.settled(stack.id).status is not Status.IN_PROGRESS:
            break
    heat.work.run(DEADLINE)
    found = heat.settled(stack.id)
    assert found.status in (Status.COMPLETE, Status.FAILED)
    if found.status is Status.FAILED:
        assert "resources." in found.reason or "imed out" in found.reason, found.reason
        assert len(found.reason) < 5_000
    return found


def _once(heat: World) -> bool:
    """Wakes each that waits for its time; who finds it too early waits on."""
    for job in [job for job in heat.work.jobs if job[0] == WAKE]:
        heat.work.handlers[WAKE](job[2])
    return False


def looked_at(heat: World, stack: Any) -> None:
    """Whatever can be shown of it can be shown, and stored."""
    rows.dump(heat.outputs(stack))
    with heat.store.read() as tx:
        session = outputs.prime_stack(tx, heat.engine, stored_stacks.get(tx, stack.id))
        for each in heat.resources(stack).values():
            rows.dump(all_attributes(session, each))
            rows.dump(TYPES[each.type].live_metadata(session.context, each))
            str(TYPES[each.type].reference(session.context, each))


_count = iter(range(10**9))


@pytest.mark.parametrize(("kind", "database_url"), alternate(NAMES), indirect=["database_url"])
@settings(max_examples=examples(4))
@given(data=st.data())
def test_stacks_with_any_properties_end(heat: World, kind: str, data: st.DataObject) -> None:
    # Everything is drawn first: what Hypothesis draws must not depend on what a stack does.
    said, told = routed(data, data.draw(properties_of(kind)), "create")
    more, told_later = routed(data, data.draw(properties_of(kind)), "update")
    policies = st.none() | st.fixed_dictionaries(
        {}, optional={name: values | st.fixed_dictionaries({"max_batch_size": numbers, "pause_time": numbers})
                      for name in ("batch_create", "rolling_update")})  # fmt: skip
    policy = data.draw(policies, label="update_policy")
    metadata = data.draw(st.none() | st.dictionaries(texts, values, max_size=2), label="metadata")
    try:
        stack = heat.create(about(kind, said, policy, metadata), name=f"s{next(_count)}")
    except StokerError as error:
        assert len(error.message) < 5_000
        return
    stack = ended(heat, stack, told)
    looked_at(heat, stack)
    _tried(lambda: heat.update(stack, about(kind, more, policy, metadata)))
    ended(heat, stack, told_later)
    looked_at(heat, stack)
    for action in (Action.CHECK, Action.SUSPEND, Action.RESUME):
        _tried(lambda action=action: heat.visit(stack, action))
        ended(heat, stack, {})
    looked_at(heat, stack)
    heat.delete(stack)
    ended(heat, stack, {})


def _tried(do: Any) -> None:
    try:
        do()
    except StokerError as error:
        assert len(error.message) < 5_000


KEYS = {
    "handle": ("status", "reason", "data", "id"),
    "run": ("deploy_stdout", "deploy_stderr", "deploy_status_code", "deploy_status_reason", "x", "bad"),
}
WAITING = template(
    {
        "handle": HANDLE,
        "wait": wait(count=2),
        "config": define("OS::Heat::SoftwareConfig", outputs=[{"name": "x"}, {"name": "bad", "error_output": True}]),
        "run": on("s"),
    },
    outputs={
        "data": {"value": {"get_attr": ["wait", "data"]}},
        "x": {"value": {"get_attr": ["run", "x"]}},
        "all": {"value": {"get_attr": ["run"]}},
    },
)


@pytest.mark.parametrize("name", sorted(KEYS))
@settings(max_examples=examples(10))
@given(data=st.data())
@example(data=None)
def test_any_signal_is_accepted_or_refused(heat: World, name: str, data: st.DataObject | None) -> None:
    stack = heat.create(WAITING, name=f"s{next(_count)}")
    if data is None:
        said = [dict.fromkeys(KEYS[name], "a\0b") | ({"status": "FAILURE"} if name == "handle" else {})]
    else:
        known = st.fixed_dictionaries({}, optional={key: values for key in KEYS[name]})
        said = data.draw(st.lists(known | st.dictionaries(texts, values, max_size=2), min_size=1, max_size=3))
    for details in said:
        try:
            heat.store.write(lambda tx, details=details: signal_named(tx, heat.engine, stack, name, details))
        except StokerError as error:
            assert error.message
        rows.dump(heat.outputs(stack))
        heat.events(stack)
    heat.work.run(DEADLINE)
    assert heat.settled(stack.id).status is not Status.IN_PROGRESS
