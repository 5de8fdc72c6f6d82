"""
The example templates for software configuration of openstack/heat-templates, on the cloud of one machine and on a real
OpenStack whose servers are machines.

`STOKER_TEST_HEAT_TEMPLATES` names a checkout of that repository, which is not a part of Stoker. On the OpenStack, the
servers of the templates get the property `agent: stoker`, because its image has no agent.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_support.cloud_machines import CloudStack, RealCloud, real_machines, stoker_at
from stoker_client.templates.bundle import collect
from support.server import Served

VARIABLE = "STOKER_TEST_HEAT_TEMPLATES"
CHECKOUT = os.environ.get(VARIABLE, "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:Support for InfluxDB"),
    pytest.mark.skipif(not CHECKOUT, reason=f"{VARIABLE} names no checkout of openstack/heat-templates"),
]

#: Values of the parameters without defaults.
PARAMETERS: Mapping[str, str] = {
    "key_name": "heat_key",
    "flavor": "m1.small",
    "image": "tiny",
    "ubuntu_image": "tiny",
    "fedora_image": "tiny",
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
    "example-structured-template": (None, {"server_ip": "{network}"}),
    "example-sw-component-template": (None, {"server_ip": "{network}", "sw_component_last_action": "CREATE"}),
}
#: Templates that run on machines of their own, but not on this one.
RUN_ON_MACHINES: Mapping[str, tuple[str | None, Mapping[str, str]]] = {
    "cirros-hello-world": (None, {"deploy_output": "Hello, world!"}),
}
#: What the consoles of machines must show.
CONSOLES = {"example-cloud-init": tuple(f"part-00{number} ended with 0" for number in (1, 2, 3))}
#: Templates that are only checked, and what their runs would need.
CHECKED = {
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
#: The line of servers that have agents.
_FORMAT = re.compile(r"^( +)user_data_format: SOFTWARE_CONFIG$", re.M)
#: The template whose config is a list, which Heat 27 refuses as well.
REFUSED = {"example-chef-template": "resources.structured_config.properties.config: : Value must be a map, not a list"}


@dataclass
class Site:
    """A Stoker with its cloud; None: the cloud of one machine. ``network`` is the beginning of private addresses."""

    stoker: Served
    network: str
    cloud: RealCloud | None = None

    @property
    def agent(self) -> str | None:
        return None if self.cloud is None else "stoker"


@pytest.fixture(scope="module", params=["one machine", "openstack"])
def site(request, tmp_path_factory) -> Iterator[Site]:
    if request.param == "one machine":
        yield Site(request.getfixturevalue("stoker"), "127.")
        return
    folder = tmp_path_factory.mktemp("openstack")
    with real_machines(folder) as cloud, cloud.keypair(PARAMETERS["key_name"]), stoker_at(cloud, folder) as stoker:
        yield Site(stoker, "10.", cloud)


def _templates() -> dict[str, Path]:
    [folder] = Path(CHECKOUT).glob("**/software-config/example-templates")
    return {path.stem: path for path in folder.glob("**/*.yaml") if not path.stem.endswith("_env")}


def _body(path: Path, agent: str | None = None) -> dict[str, Any]:
    """Return the request for a stack: with files, the environment beside the template, parameters and agents."""
    environment = path.with_name(f"{path.stem}_env.yaml")
    declared = yaml.safe_load(path.read_text()).get("parameters") or {}
    body = collect(str(path), [str(environment)] if environment.exists() else [])
    if agent is not None:
        body["template"] = _FORMAT.sub(rf"\g<0>\n\g<1>agent: {agent}", body["template"])
    return {
        **body,
        "stack_name": path.stem,
        "parameters": {name: value for name, value in PARAMETERS.items() if name in declared},
        "timeout_mins": 10,
    }


def test_the_templates_are_exactly_these():
    assert sorted(_templates()) == sorted((*RUN, *RUN_ON_MACHINES, *CHECKED, *REFUSED))
    assert len(_templates()) == 23


def test_all_templates_are_valid(site: Site):
    for name, path in _templates().items():
        answer = site.stoker.heat("POST", "/stacks/preview", _body(path))
        if name in REFUSED:
            assert (answer.status, REFUSED[name] in answer.body["error"]["message"]) == (400, True)
        else:
            assert answer.status == 200, (name, answer.body)


@pytest.mark.parametrize("name", sorted((*RUN, *RUN_ON_MACHINES)))
def test_a_template_completes(site: Site, name: str):
    if site.cloud is None and name in RUN_ON_MACHINES:
        pytest.skip("needs a machine of its own")
    program, contents = (RUN | RUN_ON_MACHINES)[name]
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    body = _body(_templates()[name], site.agent)
    stack = CloudStack.create(site.stoker, body.pop("stack_name"), body.pop("template"), **body)
    stack.end("CREATE_COMPLETE", 300)
    outputs = {key: str(value) for key, value in stack.outputs.items()}
    expected = {key: text.format(network=site.network) for key, text in contents.items()}
    assert {key: text for key, text in expected.items() if text not in outputs[key]} == {}, outputs
    if site.cloud is not None:
        _check_consoles(site.stoker, site.cloud, CONSOLES.get(name, ()))
    stack.delete()
    servers = site.cloud.servers().values() if site.cloud is not None else ()
    assert [server["name"] for server in servers if server["name"].startswith(name)] == []


def _check_consoles(stoker: Served, cloud: RealCloud, lines: tuple[str, ...]) -> None:
    """Check that the machines have carried their user data out."""
    for id in cloud.servers():
        stoker.until(lambda id=id: "booted" in cloud.console(id))
        console = cloud.console(id)
        assert "Traceback" not in console
        assert [line for line in lines if line not in console] == [], console
