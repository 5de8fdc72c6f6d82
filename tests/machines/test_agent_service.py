"""The agent under a real systemd: notifications, restarts, upgrades, and the mode without root."""

from __future__ import annotations

import pytest

import stoker_agent
from support.agent_programs import build_agent
from support.server import served

pytestmark = pytest.mark.slow
_PROGRAM = "/opt/stoker-agent/stoker-agent.pyz"


def show(machine, name: str) -> str:
    return machine.run(["systemctl", "show", "-P", name, "stoker-agent"]).stdout.strip()


def test_the_service_survives_a_kill_an_upgrade_and_the_loss_of_root(machines, tmp_path):
    with served(tmp_path, "--insecure-http", host=machines.host_address) as stoker:
        machine = machines.make("web", booted=True)
        machine.enroll(stoker)
        assert (show(machine, "ActiveState"), show(machine, "Type")) == ("active", "notify")
        assert (show(machine, "WatchdogUSec"), show(machine, "OOMPolicy")) == ("5min", "continue")
        pid = show(machine, "MainPID")
        machine.run(["kill", "-9", pid])
        machine.until(
            "sh", "-c", f"systemctl is-active stoker-agent && [ $(systemctl show -P MainPID stoker-agent) != {pid} ]"
        )
        machine.until("stoker-agent", "status")

        old = build_agent(tmp_path / "old", "0.0.1")
        machine.run(["systemctl", "stop", "stoker-agent"])
        machine.put(_PROGRAM, old, 0o755)
        machine.run(["systemctl", "start", "stoker-agent"])
        stoker.until(lambda: stoker.json("server", "show", "web")["agent_version"] == "0.0.1")
        pid = show(machine, "MainPID")
        stoker.run("server", "upgrade", "web", "--follow")
        stoker.until(lambda: stoker.json("server", "show", "web")["agent_version"] == stoker_agent.__version__)
        assert (show(machine, "MainPID"), show(machine, "NRestarts")) == (pid, "0")  # the same process
        assert show(machine, "ActiveState") == "active"

        machine.run(["stoker-agent", "install", "--user", "stoker"])
        machine.until("stoker-agent", "status")
        assert show(machine, "User") == "stoker"
        assert stoker.run("run", "web", "--", "id -un").stdout.count("stoker") >= 1
        denied = stoker.run("run", "web", "--", "touch /etc/x", check=False)
        assert denied.returncode != 0
        stoker.run("server", "upgrade", "web", "--follow")
