"""The agent as its own user, whose runs start some commands as root by sudo."""

from __future__ import annotations

import pytest

from support.agent_protocol import deploy, shown

pytestmark = pytest.mark.slow

RULES = "/etc/sudoers.d/stoker-agent"
UNIT = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo started >> /srv/starts'\n"
#: A config for each hook that needs root.
CONFIGS = {
    "package": {"name": "sl"},
    "service": {"name": "demo", "state": "stopped"},
    "user": {"name": "newcomer"},
    "reboot": {"command": "systemctl reboot"},
}


def fail(stoker, server, group, config):
    """Deploy a config to a server, and return the reason of its failure."""
    deployment = deploy(stoker, server, config, group=group)
    stoker.until(lambda: shown(stoker, deployment)["status"] == "FAILED")
    return shown(stoker, deployment)["status_reason"]


def test_runs_of_the_agents_user_start_the_commands_of_the_rules_as_root_and_no_others(machines, stoker, sudo_base):
    machine = machines.make("web", booted=True, base=sudo_base)
    machine.enroll(stoker)
    machine.put("/etc/systemd/system/demo.service", UNIT)
    install = ["stoker-agent", "install", "--user", "stoker"]
    machine.run([*install, "--sudo", "/usr/bin/systemctl restart demo", "--sudo", "/usr/bin/id"])
    machine.run(["visudo", "-c", "-q"])
    assert machine.run(["stat", "-c", "%a %U", RULES]).stdout == "440 root\n"
    machine.until("stoker-agent", "status")

    done = stoker.run("run", "web", "--", "id -un; sudo -n id -un; sudo -n systemctl restart demo")
    assert {"stoker", "root"} <= set(done.stdout.split())
    assert machine.read("/srv/starts") == "started\n"
    denied = stoker.run("run", "web", "--", "sudo -n systemctl stop demo", check=False)
    assert denied.returncode != 0
    assert "password is required" in denied.stdout + denied.stderr

    refused = machine.run([*install, "--sudo", "/usr/bin/sudoedit /etc/hosts"], check=False)
    assert refused.returncode == 1
    assert "sudo does not accept the rules for /usr/bin/sudoedit /etc/hosts: " in refused.stderr
    assert "sudoedit should not be specified with a path" in refused.stderr
    assert "root" in stoker.run("run", "web", "--", "sudo -n id -un").stdout  # the earlier rules stay
    assert machine.run(["ls", "/etc/sudoers.d"]).stdout.split() == ["README", "stoker-agent"]

    server = stoker.json("server", "show", "web")["id"]
    for group, config in CONFIGS.items():
        reason = fail(stoker, server, group, config)
        assert f"the hook {group} needs root, and this agent runs as another user" in reason

    machine.run(install)
    assert not machine.exists(RULES)
    machine.until("stoker-agent", "status")
    assert stoker.run("run", "web", "--", "sudo -n id -un", check=False).returncode != 0

    other = "/var/lib/stoker-agent/of-another"
    machine.run(["sh", "-c", f"echo kept > {other}; chown games {other}"])
    refused = machine.run(["stoker-agent", "install", "--user", "root", "--sudo", "/usr/bin/id"], check=False)
    assert "--sudo needs --user, with another user than root" in refused.stderr
    back = machine.run(["stoker-agent", "install", "--user", "root"])
    assert "the user stoker is no longer needed: userdel stoker" in back.stdout
    assert "User=" not in machine.read("/etc/systemd/system/stoker-agent.service")
    machine.until("stoker-agent", "status")
    assert "root" in stoker.run("run", "web", "--", "id -un; touch /etc/as-root").stdout.split()
    places = ["/etc/stoker-agent", "/opt/stoker-agent", "/var/lib/stoker-agent", "/var/log/stoker-agent"]
    assert machine.run(["find", *places, "-user", "stoker"]).stdout == ""
    assert machine.run(["stat", "-c", "%U", other]).stdout == "games\n"
    machine.run(["userdel", "stoker"])
    machine.run(["stoker-agent", "install", "--user", "root"])  # once more changes nothing
    machine.until("stoker-agent", "status")
