"""The hook of the group file as root of a machine: owners, groups and the files of the system."""

from __future__ import annotations

import hashlib

import pytest

GROUP = "file"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def machine(machines):
    with machines.make("files") as machine:
        yield machine


def stat(machine, path):
    return machine.run(["stat", "-c", "%a %U %G", path]).stdout.strip()


def test_a_file_has_its_owner_group_and_checksum(machine, machine_hook):
    content = "password=${password}\n"
    digest = hashlib.sha256(b"password=secret\n").hexdigest()
    config = {"path": "/etc/app/app.conf", "template": content, "owner": "daemon", "group": "adm", "mode": "0640"}
    entry = machine_hook.entry({**config, "checksum": digest}, password="secret")
    first = machine_hook.run(entry)
    assert (first.code, first.changed, stat(machine, "/etc/app/app.conf")) == (0, True, "640 daemon adm"), first
    assert machine.read("/etc/app/app.conf") == "password=secret\n"
    assert machine_hook.run(entry).changed is False
    machine.run(["chown", "root:root", "/etc/app/app.conf"])
    assert machine_hook.run(entry, mode="check").changed is True
    assert stat(machine, "/etc/app/app.conf") == "640 root root"
    assert machine_hook.run(entry).changed is True
    assert stat(machine, "/etc/app/app.conf") == "640 daemon adm"


def test_undo_restores_owner_and_mode_of_a_file_of_the_system(machine, machine_hook):
    machine.put("/etc/motd", "before\n", 0o604)
    machine.run(["chown", "daemon:adm", "/etc/motd"])
    machine_hook.run(entry := machine_hook.entry({"path": "/etc/motd", "content": "after\n", "owner": "root"}))
    assert machine.read("/etc/motd") == "after\n"
    assert machine_hook.run(entry, mode="undo").changed is True
    assert (machine.read("/etc/motd"), stat(machine, "/etc/motd")) == ("before\n", "604 daemon adm")


def test_a_folder_belongs_to_its_owner(machine, machine_hook):
    config = {"path": "/srv/app/data", "state": "directory", "owner": "1", "group": "daemon", "mode": "2750"}
    assert machine_hook.run(entry := machine_hook.entry(config)).changed is True
    assert stat(machine, "/srv/app/data") == "2750 daemon daemon"
    assert machine_hook.run(entry).changed is False
