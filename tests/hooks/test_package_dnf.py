"""The hook of the group package with the real dnf and rpm. The machine is a Debian without apt."""

from __future__ import annotations

import pytest

from support.rpm_packages import Package, add_packages, use_local_packages

GROUP = "package"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def machine(machines, rpm_base):
    with machines.make("dnf", base=rpm_base) as machine:
        use_local_packages(machine)
        demos = [Package("demo", version, requires="library") for version in ("1.0", "2.0")]
        add_packages(machine, [Package("library"), *demos])
        yield machine


@pytest.fixture(autouse=True)
def clean(machine):
    yield
    machine.run(["sh", "-c", "for name in demo library later; do rpm -e --nodeps $name; done"], check=False)


def version_of(machine, name="demo"):
    return machine.run(["rpm", "-q", "--queryformat", "%{VERSION}", name], check=False).stdout


def test_a_package_is_installed_upgraded_downgraded_and_removed(machine, machine_hook):
    pinned = machine_hook.entry({"name": "demo=1.0-1"})
    machine_hook.environment["STOKER_PROGRESS"] = "/srv/progress"
    first = machine_hook.run(pinned)
    assert (first.code, first.changed, first.items) == (0, True, ["demo", "library"]), first.stderr
    lines = machine.read("/srv/progress").splitlines()
    assert [line[: line.index(":")] for line in lines] == ["50 package 1 of 2", "100 package 2 of 2"]
    assert "library" in lines[0]
    assert machine_hook.run(pinned).changed is False
    latest = machine_hook.entry({"name": "demo", "state": "latest"})
    drift = machine_hook.run(latest, mode="check")
    assert [change["diff"] for change in drift.report["deploy_changes"]] == ["1.0-1 → 2.0-1"]
    assert machine_hook.run(latest).code == 0
    assert version_of(machine) == "2.0"
    down = machine_hook.run(pinned)
    assert (down.code, version_of(machine)) == (0, "1.0"), down.stderr
    removed = machine_hook.run(machine_hook.entry({"name": "demo", "state": "absent"}))
    assert (removed.code, removed.items) == (0, ["demo", "library"])


def test_a_version_without_the_release_selects_the_package_and_undo_removes_it(machine, machine_hook):
    entry = machine_hook.entry({"name": "demo=1.0"})
    assert machine_hook.run(entry).code == 0
    assert version_of(machine) == "1.0"
    assert [machine_hook.run(entry, mode=mode).changed for mode in ("apply", "check")] == [False, False]
    assert machine_hook.run(entry, mode="undo").items == ["demo", "library"]
    assert machine_hook.run(entry, mode="undo").changed is False


def test_lists_are_refreshed_and_an_unknown_package_is_a_failure(machine, machine_hook):
    unknown = machine_hook.run(machine_hook.entry({"name": "no-such-package"}))
    assert (unknown.code, unknown.changed) == (1, False)
    assert "Unable to find a match: no-such-package" in unknown.stderr
    add_packages(machine, [Package("later")])
    assert machine_hook.run(machine_hook.entry({"name": "later", "update_cache": True})).items == ["later"]
