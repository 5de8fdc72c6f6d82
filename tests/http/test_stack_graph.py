"""The graph of a stack: nodes with their servers and times, edges, and what each node waits for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.in_process import Inside
from support.templates import config, define, deployment, server, template

pytestmark = pytest.mark.filterwarnings("ignore")
CHILD = json.dumps(template({"inner": define("OS::Heat::Value", value="x")}))


def graph(site: Inside, path: str, depth: int = 0) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """The nodes, and the edges, by the names of the resources."""
    shown = site.call("GET", f"{path}/graph?nested_depth={depth}")["graph"]
    names = {node["id"]: node["resource_name"] for node in shown["nodes"]}
    for node in shown["nodes"]:
        node["waits_for"] = {names[id] for id in node["waits_for"]}
    edges = {(names[edge["source"]], names[edge["target"]]) for edge in shown["edges"]}
    return {node["resource_name"]: node for node in shown["nodes"]}, edges


@pytest.fixture
def path(site) -> str:
    """A stack of two deployments on a server, of which the second waits for the first."""
    transport = "HEAT_SIGNAL"
    resources = {
        "server": server(),
        "config": config(),
        "first": deployment(signal_transport=transport),
        "second": deployment(after=("first",), signal_transport=transport),
    }
    return site.create_stack("app", template(resources))


def test_nodes_have_servers_times_and_what_they_wait_for(site, path):
    nodes, edges = graph(site, path)
    assert edges == {
        *(("server", "first"), ("server", "second"), ("config", "first"), ("config", "second"), ("first", "second")),
    }
    machine, first, second = nodes["server"], nodes["first"], nodes["second"]
    assert {node["server_id"] for node in (machine, first, second)} == {machine["physical_resource_id"]}
    assert {node["server_name"] for node in (machine, first, second)} == {"machine"}
    assert nodes["config"]["server_id"] is None
    assert (machine["resource_status"], machine["waits_for"]) == ("CREATE_COMPLETE", set())
    assert None not in (machine["start_time"], machine["end_time"])
    assert (first["resource_status"], first["waits_for"]) == ("CREATE_IN_PROGRESS", set())
    assert first["start_time"] is not None is first["end_time"]
    assert "agent" in first["resource_status_reason"]
    assert (second["resource_status"], second["waits_for"]) == ("INIT_COMPLETE", {"first"})
    assert second["start_time"] is second["end_time"] is None


def test_an_ended_resource_has_both_times_and_nothing_waits_for_it(site, path):
    site.call("POST", f"{path}/resources/first/signal", {"deploy_status_code": 0})
    nodes, _ = graph(site, path)
    assert None not in (nodes["first"]["start_time"], nodes["first"]["end_time"])
    assert (nodes["second"]["resource_status"], nodes["second"]["waits_for"]) == ("CREATE_IN_PROGRESS", set())
    site.call("POST", f"{path}/resources/second/signal", {"deploy_status_code": 1})
    nodes, _ = graph(site, path)
    assert (nodes["second"]["resource_status"], nodes["second"]["end_time"] is None) == ("CREATE_FAILED", False)


def test_nested_stacks_are_included_by_depth(site):
    path = site.create_stack("app", template({"child": {"type": "child.yaml"}}), files={"child.yaml": CHILD})
    (child,) = graph(site, path)[0].values()
    nodes, _ = graph(site, path, 1)
    assert set(nodes) == {"child", "inner"}
    assert child["nested_stack_id"] == nodes["inner"]["stack_id"] != child["stack_id"]


def test_a_paused_resource_has_its_breakpoint(site):
    environment = {"resource_registry": {"resources": {"value": {"hooks": "pre-create"}}}}
    value = define("OS::Heat::Value", value="x")
    path = site.create_stack("app", template({"value": value}), environment=environment)
    assert graph(site, path)[0]["value"]["breakpoint"] == "pre-create"


def test_the_number_of_statements_does_not_depend_on_the_stack(site):
    few = site.create_stack("app", template({"a": {"type": "child.yaml"}}), files={"child.yaml": CHILD})
    before = site.counted(lambda: graph(site, few, 1))
    site.call("DELETE", few)
    many = site.create_stack(
        "app", template({name: {"type": "child.yaml"} for name in "abcdef"}), files={"child.yaml": CHILD}
    )
    assert site.counted(lambda: graph(site, many, 1)) == before <= 12
