"""Configs of other kinds: components, cloud-init's, several in one."""

from __future__ import annotations

import email

import pytest
import yaml

from stoker.model.errors import StackValidationFailed
from support.templates import config, define, deployment, server, template


def component(*configs, **more):
    return define("OS::Heat::SoftwareComponent", configs=list(configs), outputs=[{"name": "result"}], **more)


INSTALL = {"actions": ["CREATE"], "tool": "script", "config": "install"}
REMOVE = {"actions": ["DELETE", "backup"], "tool": "ansible", "config": "remove"}


def test_a_component_is_run_for_the_actions_it_has_configs_for(heat):
    run = deployment(signal_transport="HEAT_SIGNAL")
    said = template({"config": component(INSTALL, REMOVE), "server": server(), "run": run})
    stack = heat.create(said)
    [made] = heat.deployments()
    assert (made.action, made.status) == ("CREATE", "IN_PROGRESS")
    heat.report(made, result="r")
    changed = {**said["resources"], "run": {**run, "properties": {**run["properties"], "name": "other"}}}
    stack = heat.update(stack, template(changed))
    assert (str(stack.status), heat.deployments()[0].action) == ("COMPLETE", "CREATE")  # it has none for UPDATE
    heat.delete(stack)
    [going] = heat.deployments()
    assert (going.action, going.status) == ("DELETE", "IN_PROGRESS")
    heat.report(going)
    assert heat.settled(stack.id).deleted_at is not None


@pytest.mark.parametrize(
    ("configs", "sentence"),
    [
        ((), "at least one config"),
        ((INSTALL, {**REMOVE, "actions": ["CREATE"]}), r"for the same action \(CREATE\)"),
        (({**INSTALL, "actions": []},), "at least one of actions"),
        (({"config": "x"},), "tool not assigned"),
    ],
)
def test_an_invalid_component_is_refused(heat, configs, sentence):
    with pytest.raises(StackValidationFailed, match=sentence):
        heat.create(template({"config": component(*configs)}))


def content(heat, kind, name="s", **properties):
    resources = {"it": define(f"OS::Heat::{kind}", **properties), "other": config("o")}
    outputs = {"text": {"value": {"get_attr": ["it", "config"]}}}
    return heat.outputs(heat.create(template(resources, outputs=outputs), name))["text"]


def test_cloud_config_is_yaml_below_its_header(heat):
    text = content(heat, "CloudConfig", cloud_config={"users": [{"name": "ü"}], "packages": ["a"]})
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text) == {"users": [{"name": "ü"}], "packages": ["a"]}


def test_parts_of_a_message_are_joined(heat):
    one = {"config": "#!/bin/sh\n", "filename": "x-shellscript.sh", "subtype": "x-shellscript"}
    two = {"config": "ü", "filename": "cloud-config.txt"}
    inner = {"config": content(heat, "MultipartMime", parts=[one]), "type": "multipart"}
    parts = [one, two, inner, {"config": "plain"}, {"config": {"get_resource": "other"}}]
    text = email.message_from_string(content(heat, "MultipartMime", "second", parts=parts))
    found = [
        (part.get_content_type(), part.get_filename(), part.get_payload(decode=True)) for part in text.get_payload()
    ]
    assert found == [
        ("text/x-shellscript", "x-shellscript.sh", b"#!/bin/sh\n"),
        ("text/cloud-config", "cloud-config.txt", "ü".encode()),
        ("text/x-shellscript", "x-shellscript.sh", b"#!/bin/sh\n"),
        ("text/plain", None, b"plain"),
        ("text/plain", None, b"o"),
    ]
