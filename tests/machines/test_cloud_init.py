"""Debian's cloud-init carries out user data at the first boot of machines, with the NoCloud datasource."""

from __future__ import annotations

import json

import pytest

from support.machines import Machine
from support.templates import define, template

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_SCRIPT = "#!/bin/sh\nprintf '%s' \"$(cat /proc/sys/kernel/hostname)\" > $heat_outputs_path.host\n"


def boot(machines, base, folder, name: str, user_data: str) -> Machine:
    """Start a machine whose datasource has this user data, and wait until cloud-init has ended."""
    seed = folder / name / "var/lib/cloud/seed/nocloud"
    seed.mkdir(parents=True)
    seed.joinpath("user-data").write_text(user_data)
    seed.joinpath("meta-data").write_text(json.dumps({"instance-id": f"i-{name}", "local-hostname": name}))
    machine = machines.make("unnamed", booted=True, base=base, image=folder / name)
    status = machine.run(["cloud-init", "status", "--wait", "--long"], check=False).stdout
    assert "status: done" in status, status + machine.read("/var/log/cloud-init-output.log")
    assert "DataSourceNoCloud" in status
    return machine


def log_of(machine: Machine) -> str:
    return machine.read("/var/log/cloud-init-output.log")


def test_machines_enroll_at_their_first_boot(machines, stoker, cloud_base, tmp_path):
    user_data = stoker.run("server", "user-data", "web1").stdout
    web1 = boot(machines, cloud_base, tmp_path, "web1", user_data)
    assert "enrolled as server web1" in log_of(web1)
    stoker.until(lambda: stoker.json("server", "show", "web1")["status"] == "ONLINE")
    assert stoker.run("run", "web1", "--", "cat /proc/sys/kernel/hostname").stdout.count("web1")
    facts = stoker.json("server", "show", "web1")["facts"]
    assert (facts["cloud"]["name"], facts["cloud"]["id"]) == ("nocloud", "i-web1")

    # cloud-init runs the line once: a later boot keeps the enrollment.
    key = web1.read("/etc/stoker-agent/agent.json")
    web1.run(["systemctl", "reboot"], check=False)
    web1.wait_reboot()
    web1.until("stoker-agent", "status")
    assert web1.read("/etc/stoker-agent/agent.json") == key
    assert log_of(web1).count("enrolled as server web1") == 1


def test_a_machine_becomes_the_server_of_a_stack(machines, stoker, cloud_base, tmp_path):
    server = {"name": "web2", "agent": "stoker", "software_config_transport": "POLL_SERVER_CFN"}
    config = {"group": "script", "config": _SCRIPT, "outputs": [{"name": "host"}]}
    deployment = {"config": {"get_resource": "config"}, "server": {"get_resource": "web2"}}
    resources = {
        "web2": define("OS::Heat::DeployedServer", **server),
        "config": define("OS::Heat::SoftwareConfig", **config),
        "deployment": define("OS::Heat::SoftwareDeployment", **deployment),
    }
    outputs = {"user_data": {"value": {"get_attr": ["web2", "user_data"]}}}
    outputs |= {"host": {"value": {"get_attr": ["deployment", "host"]}}}
    stack = stoker.create_stack("shop", template(resources, outputs=outputs))
    web2 = boot(machines, cloud_base, tmp_path, "web2", stoker.outputs(stack)["user_data"])
    assert web2.run(["stat", "-c", "%a", "/var/lib/cloud/data/cfn-init-data"]).stdout == "600\n"
    stoker.await_stack(stack)
    assert stoker.outputs(stack)["host"] == "web2"
    assert web2.run(["systemctl", "is-active", "stoker-agent"]).stdout == "active\n"
