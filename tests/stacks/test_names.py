"""Names of real things, as Heat makes them: scripts and mail filters go by their form."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace

from stoker.resources.base import name_within
from stoker.store import configs
from support.templates import config, define, template

#: Names are computed.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

SHORT_ID = "[a-z2-7]{12}"


def test_resources_without_an_id_are_referenced_by_their_physical_name(heat):
    kinds = [
        define("OS::Heat::Value", value=1),
        {"type": "OS::Heat::TestResource"},
        define("OS::Heat::TestResource", wait_secs=5),
        {"type": "OS::Heat::RandomString"},
        {"type": "OS::Heat::SwiftSignalHandle"},
        define("OS::Zaqar::SignedQueueURL", queue="q"),
    ]
    resources = {f"r{i}": kind for i, kind in enumerate(kinds)}
    made = heat.resources(heat.create(template({**resources, "config": config()}), name="web"))
    for name in (f"r{i}" for i in range(len(kinds))):
        assert re.fullmatch(f"web-{name}-{SHORT_ID}", made[name].physical_id)
    assert re.fullmatch(f"web-config-{SHORT_ID}", heat.read(configs.find, made["config"].physical_id).name)
    # What Heat's own function gives for this UUID.
    known = replace(made["r1"], id="37c8fb23-2e56-4c16-bb72-ed0b8b09b6a2", name="r")
    assert name_within("s", known) == "s-r-yfroky34r6zd"


def test_a_physical_name_is_the_reference_and_survives_updates(heat):

    def made(value):
        resources = {"v": define("OS::Heat::Value", value=value)}
        return template(resources, outputs={"ref": {"value": {"get_resource": "v"}}})

    stack = heat.create(made(1), name="web")
    before = heat.outputs(stack)
    assert re.fullmatch(f"web-v-{SHORT_ID}", before["ref"])
    assert heat.outputs(heat.update(stack, made(2))) == before


def test_nested_stacks_have_derived_names_and_long_names_are_shortened(heat):
    inner = template({"v": define("OS::Heat::Value", value=1)})
    files = {"inner.yaml": json.dumps(inner)}
    stack = heat.create(template({"in": {"type": "inner.yaml"}}), name="s" + "x" * 254, files=files)
    nested = heat.nested(stack, "in")
    assert re.fullmatch(f"sx-x+-in-{SHORT_ID}", nested.name)
    assert len(nested.name) == 255
