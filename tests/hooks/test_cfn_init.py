"""The hooks of the groups cfn-init and apply-config with heat-cfntools and os-apply-config, in a booted machine."""

from __future__ import annotations

import json

import pytest

from hooks.conftest import MachineHook

pytestmark = pytest.mark.slow

_PROGRAM = '#!/bin/sh\nPYTHONPATH=/opt/cfntools exec python3 /opt/cfntools/bin/{name} "$@"\n'
_UNIT = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"


@pytest.fixture(scope="module")
def machine(machines, cfn_tools):
    with machines.make("cfn", booted=True) as machine:
        machine.put_folder("/opt/cfntools", cfn_tools)
        for name in ("cfn-init", "os-apply-config"):
            machine.put(f"/usr/local/bin/{name}", _PROGRAM.format(name=name), 0o755)
        yield machine


@pytest.fixture
def cfn_init(machine, tmp_path):
    return MachineHook("cfn-init", tmp_path, machine=machine)


def test_files_and_commands_of_the_metadata_are_applied(machine, cfn_init):
    init = {
        "config": {
            "files": {"/etc/app.conf": {"content": "port=80\n", "mode": "000640", "owner": "root", "group": "daemon"}},
            "commands": {"mark": {"command": "echo $0 ran > /root/mark"}},
        }
    }
    outcome = cfn_init.run(cfn_init.entry(init))
    assert outcome.code == 0, outcome
    assert machine.read("/etc/app.conf") == "port=80\n"
    assert machine.run(["stat", "-c", "%a %G", "/etc/app.conf"]).stdout == "640 daemon\n"
    assert "ran" in machine.read("/root/mark")
    metadata = json.loads(machine.read("/var/cache/heat-cfntools/last_metadata"))
    assert metadata == {"AWS::CloudFormation::Init": init}
    assert machine.run(["stat", "-c", "%a", "/var/cache/heat-cfntools/last_metadata"]).stdout == "600\n"


def test_services_of_the_metadata_run(machine, cfn_init):
    machine.put("/etc/systemd/system/app.service", _UNIT)
    machine.run(["systemctl", "daemon-reload"])
    services = {"systemd": {"app": {"enabled": "true", "ensureRunning": "true"}}}
    outcome = cfn_init.run(cfn_init.entry(json.dumps({"config": {"services": services}})))
    assert outcome.code == 0, outcome
    machine.until("systemctl", "is-active", "app")
    assert machine.run(["systemctl", "is-enabled", "app"]).stdout == "enabled\n"


def test_a_failing_command_fails_the_run(machine, cfn_init):
    init = {"config": {"commands": {"breaks": {"command": "echo no disk left >&2; exit 3", "ignoreErrors": "false"}}}}
    outcome = cfn_init.run(cfn_init.entry(init))
    assert "no disk left" in outcome.stderr + machine.read("/var/log/cfn-init.log")
    assert outcome.code == 1


def test_templates_of_os_apply_config_are_rendered(machine, tmp_path):
    hook = MachineHook("apply-config", tmp_path, machine=machine)
    machine.put("/usr/libexec/os-apply-config/templates/etc/motd", "color {{color}}\n")
    machine.put("/var/cache/os-collect-config/local.json", json.dumps({"color": "green"}), 0o600)
    machine.put("/var/lib/os-collect-config/os_config_files.json", '["/var/cache/os-collect-config/local.json"]')
    outcome = hook.run(hook.entry(None))
    assert outcome.code == 0, outcome
    assert machine.read("/etc/motd") == "color green\n"
