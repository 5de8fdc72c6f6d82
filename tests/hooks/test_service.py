"""The hook of the group service with the real systemd of a booted machine."""

from __future__ import annotations

import pytest

GROUP = "service"
pytestmark = pytest.mark.slow

_UNIT = """[Service]
ExecStart=/bin/sh -c 'echo "{text}" > /run/app.text; exec sleep infinity'

[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module")
def machine(machines):
    with machines.make("units", booted=True) as machine:
        yield machine


@pytest.fixture(autouse=True)
def clean(machine):
    yield
    machine.run(["sh", "-c", "systemctl disable --now app; rm -f /etc/systemd/system/app.*; systemctl daemon-reload"])
    machine.run(["systemctl", "reset-failed"])


def settings(text="one", **more):
    return {"name": "app", "unit": _UNIT.format(text=text), "enabled": True, "wait": 0.2, **more}


def test_a_unit_is_started_enabled_checked_and_restarted_when_its_file_changes(machine, machine_hook):
    first = machine_hook.run(entry := machine_hook.entry(settings()))
    assert (first.code, first.changed) == (0, True), first.stderr
    assert first.items == ["/etc/systemd/system/app.service", "app.service"]
    assert (machine.show("ActiveState", "app"), machine.show("UnitFileState", "app")) == ("active", "enabled")
    process = machine.show("MainPID", "app")
    again = machine_hook.run(entry)
    assert (again.code, again.changed, machine.show("MainPID", "app")) == (0, False, process)
    assert machine_hook.run(entry, mode="check").changed is False
    machine.run(["systemctl", "stop", "app"])
    drift = machine_hook.run(entry, mode="check")
    assert [change["diff"] for change in drift.report["deploy_changes"]] == ["start"]
    assert machine.show("ActiveState", "app") == "inactive", "a check changes nothing"
    machine_hook.run(entry)
    assert machine_hook.run(entry, mode="check").changed is False
    changed = machine_hook.run(machine_hook.entry(settings("two")))
    assert changed.items == ["/etc/systemd/system/app.service", "app.service"]
    machine.until("grep", "two", "/run/app.text")
    assert machine.show("MainPID", "app") != process
    assert machine_hook.run(machine_hook.entry(settings("two", state="restarted"))).changed is True
    stopped = machine_hook.run(machine_hook.entry({"name": "app", "state": "stopped", "enabled": "false"}))
    assert (stopped.code, stopped.changed) == (0, True)
    assert (machine.show("ActiveState", "app"), machine.show("UnitFileState", "app")) == ("inactive", "disabled")


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        ("ExecStart=/bin/sh -c 'echo no disk left >&2; exit 3'", "app.service is failed (exit-code)"),
        ("Type=oneshot\nExecStart=/bin/sh -c 'echo no disk left >&2; exit 3'", "systemctl start app.service: exit 1"),
        (
            "Restart=always\nRestartSec=0\nStartLimitIntervalSec=0\n"
            "ExecStart=/bin/sh -c 'echo no disk left >&2; sleep 0.3; exit 3'",
            "app.service ended and was restarted within 5 s",
        ),
    ],
)
def test_a_unit_that_does_not_stay_active_fails_the_run_with_its_journal(machine_hook, service, reason):
    unit = f"[Unit]\nStartLimitIntervalSec=0\n[Service]\n{service.replace('StartLimitIntervalSec=0', '')}\n"
    failed = machine_hook.run(machine_hook.entry({"name": "app", "unit": unit, "wait": 5}))
    assert failed.code != 0
    assert failed.report["deploy_status_reason"] == reason
    assert "no disk left" in failed.stderr
    unknown = machine_hook.run(machine_hook.entry({"name": "no-such-unit"}))
    assert (unknown.code, "not found" in unknown.stderr) == (5, True)


def test_a_unit_without_a_process_is_active_after_its_success(machine, machine_hook):
    unit = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo x >> /run/times'\n"
    entry = machine_hook.entry({"name": "app", "unit": unit, "wait": 0})
    assert machine_hook.run(entry, mode="check").changed is True
    assert machine_hook.run(entry).code == 0
    assert machine_hook.run(entry, mode="check").changed is False
    assert machine.read("/run/times") == "x\n"
    assert machine_hook.run(machine_hook.entry({"name": "app", "state": "stopped"}), mode="check").changed is False


def test_the_run_waits_for_the_health_command(machine, machine_hook):
    machine.run(["sh", "-c", "(sleep 2; touch /run/healthy) > /dev/null 2>&1 &"])
    healthy = machine_hook.run(machine_hook.entry(settings(health="test -e /run/healthy")))
    assert healthy.code == 0
    assert machine.exists("/run/healthy")
    never = machine_hook.run(machine_hook.entry(settings(health="test -e /run/never", health_timeout=0.5)))
    assert "the health command did not succeed within 0.5 s" in never.report["deploy_status_reason"]


def test_undo_restores_a_unit_that_was_there_before(machine, machine_hook):
    machine.put("/etc/systemd/system/app.service", _UNIT.format(text="before"))
    machine.run(["systemctl", "daemon-reload"])
    machine.run(["systemctl", "enable", "--now", "app"])
    machine_hook.run(machine_hook.entry({**settings("ours"), "state": "stopped", "enabled": False}))
    assert (machine.show("ActiveState", "app"), machine.show("UnitFileState", "app")) == ("inactive", "disabled")
    undone = machine_hook.run(machine_hook.entry({"name": "app"}), mode="undo")
    assert (undone.code, undone.changed) == (0, True)
    assert (machine.show("ActiveState", "app"), machine.show("UnitFileState", "app")) == ("active", "enabled")
    machine.until("grep", "before", "/run/app.text")


def test_an_update_to_another_unit_undoes_the_former(machine, machine_hook):
    machine_hook.run(machine_hook.entry(settings()))
    machine_hook.run(machine_hook.entry({**settings(), "name": "other"}))
    assert not machine.exists("/etc/systemd/system/app.service")
    assert machine.show("ActiveState", "other") == "active"
    machine_hook.run(machine_hook.entry({"name": "other"}), mode="undo")
    assert not machine.exists("/etc/systemd/system/other.service")


def test_undo_removes_a_unit_that_the_deployment_wrote_unless_another_one_uses_it_since(machine, machine_hook):
    first, second = ({**machine_hook.entry(settings()), "deployment_id": name} for name in ("old", "new"))
    assert machine_hook.run(first).changed is True
    assert machine_hook.run(second).changed is False
    assert machine_hook.run(first, mode="undo").changed is False
    assert (machine.show("ActiveState", "app"), machine.show("UnitFileState", "app")) == ("active", "enabled")
    ended = {**machine_hook.entry({"name": "app"}, deploy_action="DELETE"), "deployment_id": "new"}
    assert (machine_hook.run(ended).code, machine_hook.run(second, mode="undo").changed) == (0, False)
    assert not machine.exists("/etc/systemd/system/app.service")
    assert (machine.show("LoadState", "app"), machine.show("ActiveState", "app")) == ("not-found", "inactive")
