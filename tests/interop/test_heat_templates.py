"""
The example templates for software configuration of openstack/heat-templates, on the cloud of one machine.

`STOKER_TEST_HEAT_TEMPLATES` names a checkout of that repository, which is not a part of Stoker.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from stoker_client.templates.bundle import collect
from support.server import Served

VARIABLE = "STOKER_TEST_HEAT_TEMPLATES"
CHECKOUT = os.environ.get(VARIABLE, "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHECKOUT, reason=f"{VARIABLE} names no checkout of openstack/heat-templates"),
]

#: Values of the parameters without defaults.
PARAMETERS: Mapping[str, str] = {
    "key_name": "heat_key",
    "flavor": "m1.small",
    "image": "debian",
    "ubuntu_image": "ubuntu",
    "fedora_image": "fedora",
    "network": "private",
    **{f"env_file_{number}": "A=1" for number in range(4)},
}
#: Templates that are run, with the program that must be installed and what the outputs contain.
RUN: Mapping[str, tuple[str | None, Mapping[str, str]]] = {
    "example-ansible-template": ("ansible-playbook", {"result": "contains"}),
    "example-cfn-init-template": (None, {"result": "during CREATE"}),
    "example-cloud-init": (None, {}),
    "example-cloud-init-configure-ca-cert": (None, {}),
    "example-config-pristine-image": (None, {"result": "/tmp/baaaaa contains fooooo", "status_code": "0"}),
    "example-deploy-sequence": (None, {"deployment_b_stdout": "Previous: Previous: NONE\ndeployment_a is running"}),
    "example-puppet-template": ("puppet", {"result": "/tmp/baaaaa contains fooooo", "status_code": "0"}),
    "example-salt-template": ("salt-call", {"status_code_deployment": "0"}),
    "example-script-template": (None, {"stdout": "Writing to /tmp/baaaaa", "other_result": "/tmp/barmy contains fu"}),
    "example-software-deploymentgroup-template": (None, {}),
    "example-structured-template": (None, {"server_ip": "127."}),
    "example-sw-component-template": (None, {"server_ip": "127.", "sw_component_last_action": "CREATE"}),
}
#: Templates that are only checked, and what their runs would need.
CHECKED = {
    "cirros-hello-world": "writes to / of the server",
    "example-docker-compose-template": "images of a registry",
    "example-kubelet-template": "kubelet and images of a registry",
    "example-os-apply-config": "an image with the element os-apply-config",
    "example-os-apply-config-plus-cloud-config": "an image with the element os-apply-config",
    "example-pristine-atomic-docker-compose": "images of a registry",
    "example-pristine-atomic-tool": "an image with atomic",
    "example-ssh-copy-id": "a user ec2-user and an SSH server",
    "WordPress_software-config_1-instance": "an image of Fedora",
    "WordPress_software-config_2-instances": "an image of Fedora",
}
#: The template whose config is a list, which Heat 27 refuses as well.
REFUSED = {"example-chef-template": "resources.structured_config.properties.config: : Value must be a map, not a list"}


def _templates() -> dict[str, Path]:
    [folder] = Path(CHECKOUT).glob("**/software-config/example-templates")
    return {path.stem: path for path in folder.glob("**/*.yaml") if not path.stem.endswith("_env")}


def _body(path: Path) -> dict[str, Any]:
    """Return the request for a stack: with files, the environment beside the template, and parameters."""
    environment = path.with_name(f"{path.stem}_env.yaml")
    declared = yaml.safe_load(path.read_text()).get("parameters") or {}
    return {
        **collect(str(path), [str(environment)] if environment.exists() else []).body(),
        "stack_name": path.stem,
        "parameters": {name: value for name, value in PARAMETERS.items() if name in declared},
        "timeout_mins": 10,
    }


def test_the_templates_are_exactly_these():
    assert sorted(_templates()) == sorted((*RUN, *CHECKED, *REFUSED))
    assert len(_templates()) == 23


def test_all_templates_are_valid(stoker: Served):
    for name, path in _templates().items():
        answer = stoker.heat("POST", "/stacks/preview", _body(path))
        if name in REFUSED:
            assert (answer.status, REFUSED[name] in answer.body["error"]["message"]) == (400, True)
        else:
            assert answer.status == 200, (name, answer.body)


@pytest.mark.parametrize("name", sorted(RUN))
def test_a_template_completes_on_the_cloud_of_one_machine(stoker: Served, name: str):
    program, contents = RUN[name]
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    path = f"/stacks/{name}/{_created(stoker, name)}"
    stoker.until(lambda: not _shown(stoker, path)["stack_status"].endswith("IN_PROGRESS"), seconds=300)
    stack = _shown(stoker, path)
    assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
    outputs = {output["output_key"]: str(output["output_value"]) for output in stack["outputs"]}
    assert {key: text for key, text in contents.items() if text not in outputs[key]} == {}, outputs
    assert stoker.heat("DELETE", path).status == 204
    stoker.until(lambda: stoker.heat("GET", path).body["stack"]["stack_status"] == "DELETE_COMPLETE", seconds=120)


def _created(stoker: Served, name: str) -> str:
    answer = stoker.heat("POST", "/stacks", _body(_templates()[name]))
    assert answer.status == 201, answer.body
    return str(answer.body["stack"]["id"])


def _shown(stoker: Served, path: str) -> Mapping[str, Any]:
    stack: Mapping[str, Any] = stoker.heat("GET", path).body["stack"]
    return stack
