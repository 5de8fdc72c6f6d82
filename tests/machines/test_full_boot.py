"""A virtual machine boots Debian's kernel, systemd and cloud-init on Stoker's user data, and carries a stack out."""

from __future__ import annotations

from typing import Any

import pytest

from support import virtual_machines
from support.ports import free_port
from support.server import served
from support.templates import define, template

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_SCRIPT = "#!/bin/sh\nprintf '%s' \"$(uname -n) $(cat /proc/1/comm)\" > $heat_outputs_path.host\n"


def test_a_virtual_machine_becomes_the_server_of_a_stack(tmp_path):
    virtual_machines.require()
    config = {"group": "script", "config": _SCRIPT, "outputs": [{"name": "host"}]}
    deployment = {"config": {"get_resource": "config"}, "server": {"get_resource": "web"}}
    resources = {
        "web": define("OS::Heat::DeployedServer", name="web", agent="stoker"),
        "config": define("OS::Heat::SoftwareConfig", **config),
        "deployment": define("OS::Heat::SoftwareDeployment", **deployment),
    }
    outputs = {"user_data": {"value": {"get_attr": ["web", "user_data"]}}}
    outputs |= {"host": {"value": {"get_attr": ["deployment", "host"]}}}
    body = {"stack_name": "shop", "template": template(resources, outputs=outputs)}
    port = free_port()
    with served(tmp_path, "--public-url", f"http://{virtual_machines.HOST}:{port}", port=port) as stoker:
        path = f"/stacks/shop/{stoker.heat('POST', '/stacks', body).body['stack']['id']}"

        def stack() -> dict[str, Any]:
            return stoker.heat("GET", path).body["stack"]

        def output(key: str) -> str:
            (value,) = [item["output_value"] for item in stack()["outputs"] if item["output_key"] == key]
            return value

        with virtual_machines.booted(tmp_path / "vm", "web", output("user_data")) as machine:
            machine.wait(lambda: stack()["stack_status"] != "CREATE_IN_PROGRESS", 1200)
            assert stack()["stack_status"] == "CREATE_COMPLETE", stack()["stack_status_reason"]
            assert output("host") == "web systemd"
