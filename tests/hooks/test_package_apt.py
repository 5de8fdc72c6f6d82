"""The hook of the group package with the real apt and dpkg of a machine, and packages from a folder."""

from __future__ import annotations

import pytest

from support.debian_packages import add_package, use_local_packages

GROUP = "package"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def machine(machines):
    with machines.make("apt") as machine:
        use_local_packages(machine)
        add_package(machine, "library", "1.0")
        add_package(machine, "demo", "1.0", depends="library")
        add_package(machine, "demo", "2.0", depends="library")
        add_package(machine, "broken", "1.0", postinst="echo no license >&2; exit 7")
        add_package(machine, "shared", "1.0")
        machine.run(["apt-get", "update"])
        yield machine


@pytest.fixture(autouse=True)
def clean(machine):
    yield
    names = ["demo", "library", "broken", "shared", "later"]
    machine.run(["dpkg", "--purge", "--force-all", *names], check=False)
    machine.run(["sh", "-c", "dpkg --get-selections | grep hold | cut -f1 | xargs -r apt-mark unhold"])


def version_of(machine, name="demo"):
    return machine.run(["dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}", name], check=False).stdout


def test_a_package_is_installed_upgraded_and_downgraded_to_its_version(machine, machine_hook):
    pinned = machine_hook.entry({"name": "demo=1.0"})
    machine_hook.environment["STOKER_PROGRESS"] = "/srv/progress"
    first = machine_hook.run(pinned)
    assert (first.code, first.changed, first.items) == (0, True, ["demo", "library"])
    assert first.report["deploy_changes"][0]["diff"] == "absent → 1.0"
    assert "Setting up demo (1.0)" in first.stdout
    assert machine.read("/srv/progress") == "50 package 1 of 2: library\n100 package 2 of 2: demo\n"
    assert version_of(machine) == "1.0 installed"
    again = machine_hook.run(pinned)
    assert (again.code, again.changed, again.stdout) == (0, False, "")
    present = machine_hook.run(machine_hook.entry({"name": "demo"}))
    assert (present.changed, version_of(machine)) == (False, "1.0 installed")
    latest = machine_hook.run(machine_hook.entry({"name": "demo", "state": "latest"}))
    assert (latest.code, latest.items, version_of(machine)) == (0, ["demo"], "2.0 installed")
    down = machine_hook.run(pinned)
    assert (down.code, down.changed, version_of(machine)) == (0, True, "1.0 installed")


def test_check_and_preview_compare_and_change_nothing(machine, machine_hook):
    entry = machine_hook.entry({"packages": ["demo=2.0", "shared"]})
    machine_hook.run(entry)
    assert machine_hook.run(entry, mode="check").changed is False
    machine.run(["apt-get", "install", "-y", "--allow-downgrades", "demo=1.0"])
    machine.run(["apt-get", "remove", "-y", "shared"])
    drift, preview = (machine_hook.run(entry, mode=mode) for mode in ("check", "preview"))
    assert (drift.code, drift.changed) == (0, True)
    assert [change["diff"] for change in drift.report["deploy_changes"]] == ["1.0 → 2.0", "absent → latest"]
    assert drift.items == preview.items == ["demo", "shared"]
    assert "Inst demo [1.0] (2.0" in preview.stdout
    assert version_of(machine) == "1.0 installed"


def test_undo_removes_the_packages_and_dependencies_that_the_deployment_installed(machine, machine_hook):
    machine.run(["apt-get", "install", "-y", "shared"])
    entry = machine_hook.entry({"packages": ["demo", "shared"]})
    machine_hook.run(entry)
    undone = machine_hook.run(machine_hook.entry({"name": "demo"}, deploy_action="DELETE"))
    assert (undone.code, undone.changed, undone.items) == (0, True, ["demo", "library"])
    assert version_of(machine, "shared") == "1.0 installed", "it was there before"
    assert "installed" not in version_of(machine, "library")
    assert machine_hook.run(entry, mode="undo").changed is False
    machine_hook.run(entry)
    machine.run(["apt-mark", "manual", "library"])
    assert machine_hook.run(entry, mode="undo").items == ["demo"]
    assert version_of(machine, "library") == "1.0 installed", "another package, or a person, needs it"


def test_a_failing_maintainer_script_fails_the_run_and_undo_removes_the_rest(machine, machine_hook):
    failed = machine_hook.run(entry := machine_hook.entry({"name": "broken"}))
    assert failed.code == 100
    assert "no license" in failed.stderr
    assert version_of(machine, "broken") == "1.0 half-configured"
    assert machine_hook.run(entry, mode="check").items == ["broken"]
    undone = machine_hook.run(entry, mode="undo")
    assert undone.code == 0
    assert "half" not in version_of(machine, "broken")


def test_an_unknown_package_and_a_package_on_hold_are_failures(machine, machine_hook):
    unknown = machine_hook.run(machine_hook.entry({"name": "no-such-package"}))
    assert (unknown.code, unknown.changed) == (100, False)
    assert unknown.report["deploy_changes"] == [{"item": "no-such-package", "outcome": "failed"}]
    assert "Unable to locate package no-such-package" in unknown.stderr
    machine_hook.run(machine_hook.entry({"name": "demo=1.0"}))
    machine.run(["apt-mark", "hold", "demo"])
    held = machine_hook.run(machine_hook.entry({"name": "demo", "state": "latest"}))
    assert (held.code, version_of(machine)) == (100, "1.0 installed")
    assert "Held packages were changed" in held.stderr


def test_packages_are_removed_and_lists_refreshed(machine, machine_hook):
    machine_hook.run(machine_hook.entry({"name": "demo"}))
    absent = machine_hook.entry({"name": "demo", "state": "absent"})
    assert machine_hook.run(absent, mode="check").report["deploy_changes"][0]["diff"] == "2.0 → absent"
    assert machine_hook.run(absent).items == ["demo"]
    assert machine_hook.run(absent).changed is False
    add_package(machine, "later", "1.0")
    assert machine_hook.run(machine_hook.entry({"name": "later"})).code == 100
    assert machine_hook.run(machine_hook.entry({"name": "later", "update_cache": True})).code == 0


#: Holds the lock of dpkg until apt-get waits for it, as the timers of a fresh server do.
_HOLDER = """
import fcntl, pathlib, time
with open("/var/lib/dpkg/lock-frontend", "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("locked", flush=True)
    while not any(b"apt-get" in path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")):
        time.sleep(0.1)
    time.sleep(1.5)  # longer than apt-get needs to try the lock
"""


def test_the_hook_waits_while_another_program_uses_dpkg(machine, machine_hook):
    machine.put("/root/holder.py", _HOLDER)
    machine.run(["sh", "-c", "python3 /root/holder.py > /root/locked 2>&1 &"])
    machine.until("grep", "-q", "locked", "/root/locked")
    outcome = machine_hook.run(machine_hook.entry({"name": "shared"}))
    assert (outcome.code, version_of(machine, "shared")) == (0, "1.0 installed"), outcome.stderr
