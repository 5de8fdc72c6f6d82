"""What single types do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.errors import StackValidationFailed
from stoker.servers import enrollment
from stoker.servers.presence import store_facts
from stoker.store import servers
from stoker.types import small
from support.stacks import values
from support.templates import config, define, deployment, server, template


@given(
    length=st.integers(8, 64),
    classes=st.lists(
        st.fixed_dictionaries({"class": st.sampled_from(sorted(small.CLASSES)), "min": st.integers(1, 3)}),
        max_size=2,
    ),
    sequence=st.text(min_size=1, max_size=4),
)
def test_a_random_string_has_the_requested_characters(length, classes, sequence):
    made = small.generate(
        {
            "length": length,
            "character_classes": classes,
            "character_sequences": [{"sequence": sequence, "min": 2}],
        }
    )
    assert len(made) == length
    for each in classes:
        assert sum(c in small.CLASSES[each["class"]] for c in made) >= each["min"]
    assert sum(c in sequence for c in made) >= 2


def test_random_strings_differ_and_are_kept(heat):
    made = template(
        {"a": {"type": "OS::Heat::RandomString"}, "b": {"type": "OS::Heat::RandomString"}},
        outputs={n: {"value": {"get_attr": [n, "value"]}} for n in "ab"} | {"ref": {"value": {"get_resource": "a"}}},
    )
    stack = heat.create(made)
    before = heat.outputs(stack)
    heat.update(stack, made)

    assert before["a"] != before["b"]
    assert before["ref"] == before["a"]
    assert heat.outputs(stack) == before


def test_a_random_string_has_an_obsolete_sequence_and_minimums_that_fit_its_length(heat):
    resource = define("OS::Heat::RandomString", length=64, sequence="octdigits")
    stack = heat.create(template({"r": resource}, outputs={"o": {"value": {"get_resource": "r"}}}))
    assert set(heat.outputs(stack)["o"]) <= set("01234567")
    resource["properties"]["sequence"] = "greek"
    with pytest.raises(StackValidationFailed, match="greek"):
        heat.create(template({"r": resource}), name="wrong")
    resource = define("OS::Heat::RandomString", length=2, character_classes=[{"class": "digits", "min": 3}])
    with pytest.raises(StackValidationFailed, match="Length property cannot be smaller"):
        heat.create(template({"r": resource}), name="wrong")


def test_a_value_is_converted_to_its_type(heat):
    """As a parameter is."""
    resource = define("OS::Heat::Value", value="a,b", type="comma_delimited_list")
    outputs = {"v": {"value": {"get_attr": ["v", "value"]}}}
    assert heat.outputs(heat.create(template({"v": resource}, outputs=outputs))) == {"v": ["a", "b"]}


def test_a_structured_deployment_puts_values_into_the_config(heat):
    resources = {
        "config": define(
            "OS::Heat::StructuredConfig", group="json-file", config={"/etc/x": {"port": {"get_input": "port"}}}
        ),
        "server": server(),
        "d": define(
            "OS::Heat::StructuredDeployment",
            config={"get_resource": "config"},
            server={"get_resource": "server"},
            input_values={"port": 80},
        ),
    }
    stack = heat.create(template(resources))
    assert heat.entry(heat.resources(stack)["server"].physical_id)["config"] == {"/etc/x": {"port": 80}}

    resources["d"]["properties"] |= {"input_values": {}, "input_values_validate": "STRICT"}
    stack = heat.update(stack, template(resources))
    assert "The Parameter (port) was not provided" in stack.reason


def test_the_facts_of_a_deployment_reach_the_agent(heat):
    extra = {"timeout": 90, "on_interrupt": "RERUN", "name": "last"}
    stack = heat.create(template({"config": config(), "server": server(), "d": deployment(**extra)}))
    server_id = heat.resources(stack)["server"].physical_id
    run = heat.entry(server_id)
    assert run["name"] == "last"
    assert values(run["inputs"]) == {
        "deploy_server_id": server_id,
        "deploy_action": "CREATE",
        "deploy_stack_id": f"s/{stack.id}",
        "deploy_resource_name": "d",
        "deploy_signal_transport": "STOKER_SIGNAL",
        "deploy_status_aware": "true",
        "deploy_timeout": "90",
        "deploy_on_interrupt": "RERUN",
    }


def test_every_resource_has_the_attribute_show(heat):
    resources = {
        "config": config("x", inputs=("word",)),
        "server": server(),
        "run": deployment(signal_transport="NO_SIGNAL", input_values={"word": "w"}),
        "value": define("OS::Heat::Value", value=1),
        "none": {"type": "OS::Heat::TestResource"},
    }
    outputs = {name: {"value": {"get_attr": [name, "show"]}} for name in resources}
    outputs["name"] = {"value": {"get_attr": ["config", "show", "name"]}}
    stack = heat.create(template(resources, outputs=outputs))
    found, made = heat.outputs(stack), heat.resources(stack)
    times = {"creation_time": found["config"]["creation_time"]}
    assert found["config"] == {
        "id": made["config"].physical_id,
        "name": found["name"],
        "group": "script",
        "config": "x",
        "inputs": [{"name": "word", "description": "", "type": "String"}],
        "outputs": [],
        "options": {},
        **times,
    }
    assert {name: found["run"][name] for name in ("id", "server_id", "input_values", "action", "status")} == {
        "id": made["run"].physical_id,
        "server_id": made["server"].physical_id,
        "input_values": {"word": "w"},
        "action": "CREATE",
        "status": "COMPLETE",
    }
    assert found["run"].keys() >= {"config_id", "output_values", "status_reason", "creation_time"}
    # Nothing shows these but their stack.
    assert (found["value"], found["server"], found["none"]) == (None, None, None)
    assert heat.output_errors(stack) == {}


def test_a_secret_input_is_shown_redacted(heat):
    run = deployment(signal_transport="NO_SIGNAL", input_values={"word": {"get_param": "hidden"}})
    said = template(
        {"config": config("x", inputs=("word",)), "server": server(), "run": run},
        parameters={"hidden": {"type": "string", "hidden": True}},
        outputs={name: {"value": {"get_attr": [name, "show"]}} for name in ("config", "run")},
    )
    stack = heat.create(said, parameters={"hidden": "hush-hush"})
    assert "hush-hush" not in json.dumps(heat.outputs(stack))


FACTS = {
    "os": {"id": "debian", "family": "debian", "version": "12"},
    "address": "10.0.0.5",
    "networks": {"eth0": ["10.0.0.5"]},
    "memory_mb": 7941,
}


def test_facts_are_attributes_of_a_server_and_null_before_the_first_report(heat):
    enrolled = heat.store.write(lambda tx: enrollment.enroll(tx, heat.project, "web1")[0])
    paths = {
        "address": ["server", "address"],
        "first": ["server", "first_address"],
        "networks": ["server", "networks"],
        "first_of_eth0": ["server", "networks", "eth0", 0],
        "family": ["server", "os", "family"],
        "memory": ["server", "facts", "memory_mb"],
        "rack": ["server", "facts", "custom", "rack"],
        "role": ["server", "facts", "labels", "role"],
    }
    text = {"str_replace": {"template": "listen ADDRESS", "params": {"ADDRESS": {"get_attr": paths["address"]}}}}
    #: The facts of a server without an agent.
    none = {name: ["none", name] for name in ("address", "networks", "os", "facts")}
    paths |= {f"none_{name}": path for name, path in none.items()}
    resources = {"server": server("web1"), "none": server("none"), "line": define("OS::Heat::Value", value=text)}
    outputs = {name: {"value": {"get_attr": path}} for name, path in paths.items()}
    stack = heat.create(template(resources, outputs=outputs))
    assert heat.resources(stack)["server"].physical_id == enrolled.id
    assert heat.outputs(stack) == dict.fromkeys(paths)
    heat.store.write(lambda tx: servers.change(tx, enrolled.id, labels={"role": "web"}))
    assert heat.outputs(stack) == dict.fromkeys(paths)
    heat.store.write(lambda tx: store_facts(tx, enrolled.id, FACTS))
    assert heat.outputs(stack) == {
        **dict.fromkeys(paths),
        "address": "10.0.0.5",
        "first": "10.0.0.5",
        "networks": {"eth0": ["10.0.0.5"]},
        "first_of_eth0": "10.0.0.5",
        "family": "debian",
        "memory": 7941,
        "role": "web",
    }
