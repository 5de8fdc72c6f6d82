"""Whatever is asked of a resource, by whatever path, is an answer or an error that names it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker import hot
from stoker.model.errors import StokerError
from stoker.stacks.engine.session import LiveScope
from stoker.stacks.outputs import prime_stack
from stoker.store import rows
from stoker.store import stacks as stored
from support.databases import alternate
from support.search import examples
from support.stacks import world
from support.templates import define, template

pytestmark = pytest.mark.slow

VALUE = define("OS::Heat::Value", value={"a": [1, {"b": "text"}]})
INNER = template({"v": VALUE}, outputs={"o": {"value": {"get_attr": ["v", "value"]}}, "OS::stack_id": {"value": [1]}})
RESOURCES = {
    "config": define("OS::Heat::SoftwareConfig", config="x"),
    "component": define("OS::Heat::SoftwareComponent", configs=[{"tool": "script", "config": "x"}]),
    "server": {"type": "OS::Heat::DeployedServer"},
    "nova": {"type": "OS::Nova::Server"},
    "run": define("OS::Heat::SoftwareDeployment", server="s", signal_transport="NO_SIGNAL"),
    "runs": define("OS::Heat::SoftwareDeploymentGroup", servers={"a": "s", "b": "s"}, signal_transport="NO_SIGNAL"),
    "none": {"type": "OS::Heat::None"},
    "value": VALUE,
    "random": {"type": "OS::Heat::RandomString"},
    "handle": {"type": "OS::Heat::WaitConditionHandle"},
    "wait": define("OS::Heat::WaitCondition", handle={"get_resource": "handle"}, timeout=9),
    "group": define("OS::Heat::ResourceGroup", count=2, resource_def=VALUE),
    "groups": define("OS::Heat::ResourceGroup", count=2, resource_def={"type": "inner.yaml"}),
    "empty": define("OS::Heat::ResourceGroup", count=0, resource_def=VALUE),
    "chain": define("OS::Heat::ResourceChain", resources=["OS::Heat::TestResource", "OS::Heat::TestResource"]),
    "inner": {"type": "inner.yaml"},
}
NAMES = [
    "", "show", "config", "configs", "name", "value", "output", "data", "token", "signal", "curl_cli", "refs",
    "refs_map", "attributes", "removed_rsrc_list", "resource", "resource.", "resource..", "resource.0", "resource.0.",
    "resource.1.o", "resource.0.value", "resource.v", "resource.v.value", "resource.a.deploy_stdout", "resource.9.x",
    "deploy_stdouts", "deploy_stdout", "o", "OS::stack_id", "os_collect_config", "addresses", "a\0b",
]  # fmt: skip
names = st.sampled_from(NAMES) | st.text(max_size=4)
steps = (
    st.sampled_from(["a", "value", "o", "0", "1", "-1", "b", "1" * 5000, "", "resource.v", "output", 0, 1, -1, 2**70])
    | st.none()
    | st.booleans()
    | st.floats()
    | st.just([1])
    | st.just({"a": 1})
)
paths = st.lists(steps, max_size=4)


@pytest.mark.parametrize(
    ("version", "database_url"), alternate(["2013-05-23", "2021-04-16"]), indirect=["database_url"]
)
def test_any_attribute_has_a_value_or_an_error(store: Any, version: str) -> None:
    heat = world(store)
    source = {**template(RESOURCES), "heat_template_version": version}
    stack = heat.create(source, files={"inner.yaml": json.dumps(INNER)})
    assert {name: state for name, state in heat.states(stack).items() if not state.endswith("COMPLETE")} == {
        "wait": "CREATE_IN_PROGRESS",
        "nova": "CREATE_IN_PROGRESS",
    }

    with store.read() as tx:
        scope = LiveScope(prime_stack(tx, heat.engine, stored.get(tx, stack.id)))

        @settings(max_examples=examples(80))
        @given(resource=st.sampled_from(sorted(RESOURCES)), name=names, path=paths)
        @example("groups", "refs_map", ["0"])
        def ask(resource: str, name: str, path: list[Any]) -> None:
            try:
                found = hot.evaluate({"get_attr": [resource, name, *path]}, scope)
                rows.dump(found)
            except StokerError as error:
                assert error.message

        ask()
        for resource in RESOURCES:
            for name in NAMES:
                ask.hypothesis.inner_test(resource, name, [])
