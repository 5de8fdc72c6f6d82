"""The agent under a real systemd: notifications, restarts, upgrades, and the mode without root."""

from __future__ import annotations

import pytest

import stoker_agent
from support.agent_programs import build_agent

pytestmark = pytest.mark.slow
_UNIT = "stoker-agent"
_PROGRAM = "/opt/stoker-agent/stoker-agent.pyz"


def test_the_service_survives_a_kill_an_upgrade_and_the_loss_of_root(machines, stoker, tmp_path):
    machine = machines.make("web", booted=True)
    machine.enroll(stoker)
    assert (machine.show("ActiveState", _UNIT), machine.show("Type", _UNIT)) == ("active", "notify")
    assert (machine.show("WatchdogUSec", _UNIT), machine.show("OOMPolicy", _UNIT)) == ("5min", "continue")
    pid = machine.show("MainPID", _UNIT)
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
    assert "0.0.1 (outdated)" in stoker.run("server", "list").stdout
    pid = machine.show("MainPID", _UNIT)
    stoker.run("server", "upgrade", "web", "--follow")
    stoker.until(lambda: stoker.json("server", "show", "web")["agent_version"] == stoker_agent.__version__)
    assert (machine.show("MainPID", _UNIT), machine.show("NRestarts", _UNIT)) == (pid, "0")  # the same process
    assert machine.show("ActiveState", _UNIT) == "active"
    assert stoker.json("server", "show", "web")["agent_outdated"] is False

    machine.run(["stoker-agent", "install", "--user", "stoker"])
    machine.until("stoker-agent", "status")
    assert machine.show("User", _UNIT) == "stoker"
    assert stoker.run("run", "web", "--", "id -un").stdout.count("stoker") >= 1
    denied = stoker.run("run", "web", "--", "touch /etc/x", check=False)
    assert denied.returncode != 0
    stoker.run("server", "upgrade", "web", "--follow")
