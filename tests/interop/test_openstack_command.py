"""The `openstack` command with Heat's plug-in, on a stack's and a deployment's whole life."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

TEMPLATE = """\
heat_template_version: 2018-08-31
parameters:
  who: {type: string}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: {get_file: greet.sh}
      inputs: [{name: who}]
      outputs: [{name: greeting}]
  server: {type: OS::Nova::Server, properties: {name: osc, image: none, flavor: none}}
  run:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_resource: config}
      server: {get_resource: server}
      input_values: {who: {get_param: who}}
outputs:
  greeting: {description: What it said, value: {get_attr: [run, greeting]}}
"""


def test_a_stack_from_create_to_delete(openstack, tmp_path):
    template, environment = tmp_path / "t.yaml", tmp_path / "e.yaml"
    template.write_text(TEMPLATE)
    environment.write_text("parameters: {who: from a file}\n")
    (tmp_path / "greet.sh").write_text('#!/bin/sh\nprintf "hello %s" "$who" > "$heat_outputs_path.greeting"\n')

    words = ("-t", str(template), "-e", str(environment), "--parameter", "who=you", "--wait", "--poll", "1")
    assert "CREATE_COMPLETE" in openstack("stack", "create", "osc", *words)
    assert [each["Stack Name"] for each in openstack("stack", "list", "-f", "json")] == ["osc"]
    shown = openstack("stack", "show", "osc", "-f", "json")
    assert shown["parameters"]["who"] == "you"
    assert openstack("stack", "output", "show", "osc", "greeting", "-f", "json")["output_value"] == "hello you"
    listed = openstack("stack", "resource", "list", "osc", "-f", "json")
    assert {each["resource_name"]: each["resource_status"] for each in listed} == dict.fromkeys(
        ("config", "server", "run"), "CREATE_COMPLETE"
    )
    run = openstack("stack", "resource", "show", "osc", "run", "-f", "json")
    events = openstack("stack", "event", "list", "osc", "-f", "json")
    assert {each["resource_name"] for each in events} >= {"osc", "run"}
    assert openstack("stack", "template", "show", "osc", "-f", "json")["parameters"] == {"who": {"type": "string"}}

    deployment = run["physical_resource_id"]
    assert "hello you" in openstack("software", "deployment", "output", "show", deployment, "--all")
    openstack("stack", "update", "osc", "--existing", "--parameter", "who=them", "--wait")
    assert openstack("stack", "output", "show", "osc", "greeting", "-f", "json")["output_value"] == "hello them"
    openstack("stack", "delete", "osc", "--yes", "--wait")
    assert openstack("stack", "list", "-f", "json") == []
    assert "not found" in openstack("stack", "show", "osc", fails=True).lower()


def test_a_failure_is_shown_with_its_output(openstack, tmp_path):
    template = tmp_path / "t.yaml"
    template.write_text(TEMPLATE)
    (tmp_path / "greet.sh").write_text("#!/bin/sh\necho the disk is gone >&2\nexit 7\n")
    said = openstack(
        "stack", "create", "osc-bad", "-t", str(template), "--parameter", "who=x", "--wait", "--poll", "1", fails=True
    )
    assert "CREATE_FAILED" in said
    told = openstack("stack", "failures", "list", "osc-bad")
    assert "the disk is gone" in told
    assert "non-zero status code: 7" in told
    openstack("stack", "delete", "osc-bad", "--yes", "--wait")


def test_configs_and_deployments_are_managed_without_a_stack(openstack, tmp_path):
    script = tmp_path / "s.sh"
    script.write_text("#!/bin/sh\necho hi\n")
    made = openstack(
        "software", "config", "create", "osc-c", "--config-file", str(script), "--group", "script", "-f", "json"
    )
    assert made["config"] == script.read_text()
    assert made["id"] in [each["id"] for each in openstack("software", "config", "list", "-f", "json")]
    words = ("--config", made["id"], "--server", "osc-somewhere", "--signal-transport", "NO_SIGNAL", "-f", "json")
    deployed = openstack("software", "deployment", "create", "osc-d", *words)
    assert deployed["server_id"] == "osc-somewhere"
    known = json.loads(openstack("software", "deployment", "metadata", "show", "osc-somewhere"))
    assert [each["config"] for each in known] == [script.read_text()]
    assert deployed["config_id"] == known[0]["id"]
    openstack("software", "deployment", "delete", deployed["id"])
    openstack("software", "config", "delete", made["id"])
    assert "not found" in openstack("software", "config", "show", made["id"], fails=True)


def test_tokens_and_the_catalog_are_shown(openstack, stoker):
    token = openstack("token", "issue", "-f", "json")
    assert token["project_id"] == stoker.project
    catalog = openstack("catalog", "list", "-f", "json")
    assert {"orchestration", "identity"} <= {each["Type"] for each in catalog}
