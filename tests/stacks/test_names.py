"""Names of real things, as Heat makes them: scripts and mail filters go by their form."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from stoker.resources.base import name_within
from stoker.store import configs, stacks
from support.stacks import world
from support.templates import config, define, deployment, server, template

#: Names are computed.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

SHORT_ID = "[a-z2-7]{12}"


@pytest.mark.parametrize(
    "kind",
    [
        define("OS::Heat::Value", value=1),
        {"type": "OS::Heat::TestResource"},
        define("OS::Heat::TestResource", wait_secs=5),
        {"type": "OS::Heat::RandomString"},
        {"type": "OS::Heat::SwiftSignalHandle"},
        define("OS::Zaqar::SignedQueueURL", queue="q"),
    ],
)
def test_resources_without_an_id_are_referenced_by_their_physical_name(store, kind):
    heat = world(store)
    stack = heat.create(template({"thing": kind}), name="web")
    assert re.fullmatch(f"web-thing-{SHORT_ID}", heat.resources(stack)["thing"].physical_id)


def test_a_physical_name_is_the_reference_and_survives_updates(store):
    heat = world(store)

    def made(value):
        resources = {"v": define("OS::Heat::Value", value=value)}
        return template(resources, outputs={"ref": {"value": {"get_resource": "v"}}})

    stack = heat.create(made(1), name="web")
    before = heat.outputs(stack)
    assert re.fullmatch(f"web-v-{SHORT_ID}", before["ref"])
    assert heat.outputs(heat.update(stack, made(2))) == before


def test_derived_names_have_the_same_form(store):
    heat = world(store)
    resources = {"config": config(), "server": server(), "run": deployment(signal_transport="NO_SIGNAL")}
    stack = heat.create(template(resources), name="web")
    with store.read() as tx:
        source = configs.find(tx, heat.resources(stack)["config"].physical_id)
    assert re.fullmatch(f"web-config-{SHORT_ID}", source.name)


def test_nested_stacks_have_derived_names_and_long_names_are_shortened(store):
    heat = world(store)
    inner = "heat_template_version: 2018-08-31\nresources: {v: {type: OS::Heat::Value, properties: {value: 1}}}\n"
    name = "s" + "x" * 254
    stack = heat.create(template({"in": {"type": "inner.yaml"}}), name=name, files={"inner.yaml": inner})
    with store.read() as tx:
        nested = stacks.get(tx, heat.resources(stack)["in"].physical_id)
    assert re.fullmatch(f"sx-x+-in-{SHORT_ID}", nested.name)
    assert len(nested.name) == 255


def test_the_short_id_equals_heats(store):
    heat = world(store)
    stack = heat.create(template({"thing": {"type": "OS::Heat::TestResource"}}), name="web")
    resource = heat.resources(stack)["thing"]
    # What Heat's own function gives for this UUID.
    known = replace(resource, id="37c8fb23-2e56-4c16-bb72-ed0b8b09b6a2", name="r")
    assert name_within("s", known) == "s-r-yfroky34r6zd"
