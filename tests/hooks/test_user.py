"""The hook of the group user with the real programs for accounts of a machine."""

from __future__ import annotations

import pytest

GROUP = "user"
#: What a deployment with SSH keys creates besides the account.
KEY_FILES = ["/home/ann/.ssh", "/home/ann/.ssh/authorized_keys"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def machine(machines):
    with machines.make("accounts") as machine:
        machine.run(["groupadd", "ops"])
        machine.run(["groupadd", "web"])
        yield machine


@pytest.fixture(autouse=True)
def clean(machine):
    yield
    machine.run(["sh", "-c", "userdel -rf ann; groupdel ann; true"], check=False)


def test_an_account_has_its_groups_shell_and_keys(machine, machine_hook):
    keys = ["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"]
    settings = {"name": "ann", "uid": 2001, "shell": "/bin/bash", "comment": "Ann", "groups": "ops", "ssh_keys": keys}
    first = machine_hook.run(entry := machine_hook.entry(settings))
    assert (first.code, first.changed, first.items) == (0, True, ["ann", *KEY_FILES]), first.stderr
    assert machine.run(["getent", "passwd", "ann"]).stdout == "ann:x:2001:2001:Ann:/home/ann:/bin/bash\n"
    assert machine.run(["id", "-nG", "ann"]).stdout.split() == ["ann", "ops"]
    assert machine.read("/home/ann/.ssh/authorized_keys") == "".join(f"{key}\n" for key in keys)
    assert machine.run(["stat", "-c", "%a %U", "/home/ann/.ssh", "/home/ann/.ssh/authorized_keys"]).stdout == (
        "700 ann\n600 ann\n"
    )
    assert machine_hook.run(entry).changed is False
    assert machine_hook.run(entry, mode="check").changed is False
    changed = machine_hook.run(machine_hook.entry({**settings, "shell": "/bin/sh", "groups": ["web"], "ssh_keys": []}))
    assert changed.code == 0
    diffs = [change.get("diff", "") for change in changed.report["deploy_changes"]]
    assert diffs[:2] == ["shell /bin/bash → /bin/sh", "member of web"]
    assert "-ssh-ed25519 AAAA one" in diffs[2]
    assert machine.run(["id", "-nG", "ann"]).stdout.split() == ["ann", "ops", "web"], "further groups stay"
    assert machine.read("/home/ann/.ssh/authorized_keys") == ""


def test_check_and_preview_report_drift(machine, machine_hook):
    entry = machine_hook.entry({"name": "ann", "groups": ["ops"], "ssh_keys": ["key"]})
    assert machine_hook.run(entry, mode="preview").report["deploy_changes"][0]["diff"] == "created"
    assert machine.run(["id", "ann"], check=False).returncode == 1
    machine_hook.run(entry)
    machine.run(["gpasswd", "--delete", "ann", "ops"])
    machine.put("/home/ann/.ssh/authorized_keys", "another key\n")
    assert machine_hook.run(entry, mode="check").items == ["ann", "/home/ann/.ssh/authorized_keys"]
    machine_hook.run(entry)
    assert machine_hook.run(entry, mode="check").changed is False


def test_undo_removes_only_an_account_that_the_deployment_created(machine, machine_hook):
    machine_hook.run(entry := machine_hook.entry({"name": "ann"}))
    machine.put("/home/ann/work", "mine\n")
    assert machine_hook.run(machine_hook.entry({"name": "ann"}, deploy_action="DELETE")).changed is True
    assert machine.run(["id", "ann"], check=False).returncode == 1
    assert machine.read("/home/ann/work") == "mine\n"
    assert machine_hook.run(entry, mode="undo").changed is False
    machine.run(["useradd", "ann"])
    machine_hook.run(machine_hook.entry({"name": "ann", "shell": "/bin/bash"}))
    assert machine_hook.run(entry, mode="undo").changed is False
    machine.run(["userdel", "ann"])
    machine.run(["rm", "-r", "/home/ann"])
    machine_hook.run(machine_hook.entry({"name": "ann", "system": True, "shell": "/usr/sbin/nologin"}))
    assert int(machine.run(["id", "-u", "ann"]).stdout) < 1000
    assert not machine.exists("/home/ann"), "an account of a service has none"


def test_an_account_is_removed_and_failures_have_a_reason(machine, machine_hook):
    machine_hook.run(machine_hook.entry({"name": "ann"}))
    machine.run(["sh", "-c", "setpriv --reuid ann --clear-groups sleep 60 > /dev/null 2>&1 &"])
    absent = machine_hook.entry({"name": "ann", "state": "absent"})
    busy = machine_hook.run(absent)
    assert (busy.code, busy.changed, "used by process" in busy.stderr) == (8, False, True)
    assert busy.report["deploy_changes"] == [{"item": "ann", "outcome": "failed", "diff": "removed"}]
    machine.run(["pkill", "-u", "ann"])
    machine.until("sh", "-c", "! pgrep -u ann")
    assert machine_hook.run(absent).items == ["ann"]
    assert machine_hook.run(absent).changed is False
    unknown = machine_hook.run(machine_hook.entry({"name": "ann", "groups": ["nothing"]}))
    assert (unknown.code, "nothing" in unknown.stderr) == (6, True)


def test_links_of_the_user_do_not_redirect_the_keys(machine, machine_hook):
    machine.put("/etc/secret", "root's\n", 0o600)
    machine_hook.run(machine_hook.entry({"name": "ann", "ssh_keys": ["one"]}))

    def plant(command):
        machine.run(["setpriv", "--reuid", "ann", "--regid", "ann", "--clear-groups", "sh", "-c", command])

    for name in ("authorized_keys", ".authorized_keys.new"):
        plant(f"cd ~ann/.ssh && ln -sf /etc/secret {name}")
    assert machine_hook.run(machine_hook.entry({"name": "ann", "ssh_keys": ["two"]})).code == 0
    assert machine.run(["stat", "-c", "%F %U", "/home/ann/.ssh/authorized_keys"]).stdout == "regular file ann\n"
    plant("rm -r ~ann/.ssh; ln -s /etc ~ann/.ssh")
    refused = machine_hook.run(machine_hook.entry({"name": "ann", "ssh_keys": ["three"]}))
    assert "/home/ann/.ssh is a link that ann could have made" in refused.report["deploy_status_reason"]
    assert not machine.exists("/etc/authorized_keys")
    assert machine.read("/etc/secret") == "root's\n"
    assert machine.run(["stat", "-c", "%a %U", "/etc/secret"]).stdout == "600 root\n"
