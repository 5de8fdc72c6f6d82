"""Whatever a signal says, it is taken or refused, and what waits for it ends."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker.model.errors import StokerError
from stoker.model.stack import Status
from stoker.stacks.engine import DEADLINE
from stoker.store import rows
from support.search import examples
from support.stacks import World, signal_named
from support.templates import HANDLE, define, on, template, wait

pytestmark = pytest.mark.slow

texts = st.sampled_from(["", "a", "a\0b", "ä", "x" * 10_000, "0", "SUCCESS", "FAILURE"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=4
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=5
)
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
_count = iter(range(10**9))


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
