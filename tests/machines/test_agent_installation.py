"""The install line and `leave` on machines of their own, with and without systemd."""

from __future__ import annotations

import pytest

from support.install_line import KILLED

pytestmark = pytest.mark.slow

FILES = ("/opt/stoker-agent", "/etc/stoker-agent", "/var/lib/stoker-agent", "/var/log/stoker-agent")
LINKS = ("/usr/local/bin/stoker-agent", "/etc/systemd/system/stoker-agent.service")

_PROGRAM = "/opt/stoker-agent/stoker-agent.pyz"


def online(stoker, name):
    return stoker.heat("GET", f"/servers/{name}").body["server"]["status"] == "ONLINE"


def rest(machine):
    return [path for path in (*FILES, *LINKS) if machine.exists(path)]


def check_systemd(machine):
    assert machine.run(["systemctl", "is-enabled", "stoker-agent"]).stdout.strip() == "enabled"


def check_background(machine):
    """The service manager of such a machine starts the printed command, and ends it with ``stop``."""
    machine.run(["stoker-agent", "stop"])
    assert machine.run(["stoker-agent", "status"], check=False).returncode == 3
    machine.run(["sh", "-c", f"setsid python3 {_PROGRAM} run < /dev/null > /dev/null 2>&1 &"])
    machine.until("stoker-agent", "status")


@pytest.mark.parametrize("manager", ["systemd", "none"])
def test_an_agent_is_installed_starts_at_boot_and_leaves_nothing(machines, stoker, manager):
    name = f"with-{manager}"
    machine = machines.make(name, booted=manager == "systemd")
    for program in ("curl", "wget", "sudo"):
        assert machine.run(["sh", "-c", f"command -v {program}"], check=False).returncode, f"{program} is there"
    machine.enroll(stoker)
    stoker.until(lambda: online(stoker, name))
    first = machine.read("/etc/stoker-agent/agent.json")
    {"systemd": check_systemd, "none": check_background}[manager](machine)
    machine.enroll(stoker, "--again")
    assert machine.read("/etc/stoker-agent/agent.json") != first
    machine.until("stoker-agent", "status")
    copy = "/srv/copy.pyz"
    machine.run(["cp", _PROGRAM, copy])
    for last in range(1, 100):
        program = _PROGRAM if machine.exists(_PROGRAM) else copy
        if machine.run(["python3", "-c", KILLED, str(last), program, "leave"], check=False).returncode == 0:
            break
    assert last > 3  # so many were killed
    assert rest(machine) == []
    assert "stoker-agent.pyz run" not in machine.run(["ps", "-ef"]).stdout
    assert stoker.heat("GET", f"/servers/{name}").status == 404


def test_a_copied_machine_does_not_use_the_key(machines, stoker):
    machine = machines.make("copied")
    machine.run(["sh", "-c", "echo 0123456789abcdef0123456789abcdef > /etc/machine-id"])
    machine.enroll(stoker)
    machine.run(["stoker-agent", "stop"])
    machine.run(["sh", "-c", "echo fedcba9876543210fedcba9876543210 > /etc/machine-id"])
    refused = machine.run(["stoker-agent", "run"], check=False)
    assert refused.returncode == 1
    assert "was copied from another machine" in refused.stderr
    doctor = machine.run(["stoker-agent", "doctor"], check=False)
    assert "the enrollment was copied from another machine -> enroll this machine, or, if it is" in doctor.stdout
    assert machine.run(["stoker-agent", "enroll", "--same-machine"]).returncode == 0
    assert machine.run(["stoker-agent", "run-once"]).returncode == 0
