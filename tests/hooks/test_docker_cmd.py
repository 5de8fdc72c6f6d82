"""The hook of the group docker-cmd with a real dockerd."""

from __future__ import annotations

import json

import pytest

from hooks.containers import IMAGE, container_machine

GROUP = "docker-cmd"
pytestmark = pytest.mark.slow

OWNER = {"deploy_stack_id": "web/1", "deploy_resource_name": "containers"}


@pytest.fixture(scope="module")
def machine(machines, container_base):
    with container_machine(machines, container_base, "docker") as machine:
        yield machine


@pytest.fixture(autouse=True)
def clean(machine):
    yield
    machine.run(["sh", "-c", "docker ps -aq | xargs -r docker rm -f"])


def names(machine, *words):
    return sorted(machine.run(["docker", "ps", *words, "--format", "{{.Names}}"]).stdout.split())


def labels(machine, name):
    return json.loads(machine.run(["docker", "inspect", "--format", "{{json .Config.Labels}}", name]).stdout)


def sleeper(**more):
    return {"image": IMAGE, "command": "sleep infinity", **more}


def test_containers_start_in_order_with_their_settings_and_labels(machine, machine_hook):
    config = {
        "web": sleeper(start_order=2, environment=["MODE=production"], volumes=["/srv:/srv"], user="65534"),
        "prepare": {
            **{"image": IMAGE, "start_order": 1, "detach": False, "volumes": ["/srv:/srv"], "net": "none"},
            "command": ["sh", "-c", "echo prepared | cat - > /srv/ready; echo to stdout; echo to stderr >&2"],
        },
    }
    first = machine_hook.run(entry := machine_hook.entry(config, **OWNER))
    assert (first.code, first.changed, first.items) == (0, True, ["prepare", "web"]), first.stderr
    assert first.stdout.startswith("to stdout\n")
    assert "to stderr\n" in first.stderr
    assert machine.read("/srv/ready") == "prepared\n"
    assert labels(machine, "web") == {
        **OWNER,
        **{"config_id": entry["id"], "container_name": "web", "managed_by": "docker-cmd"},
    }
    inside = machine.run(["docker", "exec", "web", "env"]).stdout
    assert "MODE=production\n" in inside
    assert machine.run(["docker", "inspect", "--format", "{{.Config.User}}", "web"]).stdout == "65534\n"


def test_an_update_replaces_the_containers_of_the_deployment_and_no_others(machine, machine_hook):
    machine.run(["docker", "run", "-d", "--name", "theirs", IMAGE, "sleep", "infinity"])
    other = {**OWNER, "deploy_resource_name": "other"}
    machine_hook.run(machine_hook.entry({"else": sleeper()}, **other))
    machine_hook.run(machine_hook.entry({"web": sleeper(), "old": sleeper()}, **OWNER))
    process = machine.run(["docker", "inspect", "--format", "{{.Id}}", "web"]).stdout
    updated = machine_hook.run(entry := machine_hook.entry({"web": sleeper()}, **OWNER, deploy_action="UPDATE"))
    assert updated.code == 0
    assert names(machine) == ["else", "theirs", "web"]
    assert machine.run(["docker", "inspect", "--format", "{{.Id}}", "web"]).stdout != process
    assert labels(machine, "web")["config_id"] == entry["id"]
    removed = machine_hook.run(machine_hook.entry({"web": sleeper()}, **OWNER, deploy_action="DELETE"))
    assert (removed.code, removed.items) == (0, ["web"])
    assert names(machine, "-a") == ["else", "theirs"]


def test_a_name_that_is_taken_gets_a_suffix(machine, machine_hook):
    machine.run(["docker", "run", "-d", "--name", "web", IMAGE, "sleep", "infinity"])
    config = {"web": sleeper(start_order=1), "mark": {"action": "exec", "start_order": 2, "command": "web touch /mark"}}
    outcome = machine_hook.run(entry := machine_hook.entry(config, **OWNER))
    assert outcome.code == 0, outcome.stderr
    (ours,) = names(machine, "--filter", f"label=config_id={entry['id']}")
    assert ours.startswith("web-")
    machine.run(["docker", "exec", ours, "test", "-e", "/mark"])
    assert machine.run(["docker", "exec", "web", "test", "-e", "/mark"], check=False).returncode == 1


def test_exit_codes_decide_the_result_and_all_containers_run(machine, machine_hook):
    def ends(code, order, **more):
        return {"image": IMAGE, "command": ["sh", "-c", f"exit {code}"], "detach": False, "start_order": order, **more}

    accepted = machine_hook.run(machine_hook.entry({"known": ends(3, 1, exit_codes=[0, 3])}, **OWNER))
    assert accepted.code == 0
    config = {"first": ends(4, 1), "second": ends(0, 2), "third": ends(5, 3)}
    failed = machine_hook.run(machine_hook.entry(config, **OWNER))
    assert failed.code == 4
    assert [change["outcome"] for change in failed.report["deploy_changes"]] == [
        *("changed", "failed", "changed", "failed")
    ]
    missing = machine_hook.run(machine_hook.entry({"none": {"image": "localhost/none:1"}}, **OWNER))
    assert missing.code == 125
    assert "localhost/none:1" in missing.stderr


def test_check_reports_a_container_that_stopped_and_a_repetition_starts_only_that(machine, machine_hook):
    once = {"image": IMAGE, "command": "true", "detach": False}
    entry = machine_hook.entry({"web": sleeper(), "once": once}, **OWNER)
    machine_hook.run(entry)
    assert machine_hook.run(entry, mode="check").changed is False, "a container that ran once need not run"
    assert machine_hook.run(entry).changed is False
    machine.run(["docker", "stop", "-t", "0", "web"])
    drift = machine_hook.run(entry, mode="check")
    assert (drift.changed, drift.report["deploy_changes"][0]["diff"]) == (True, "not running")
    repaired = machine_hook.run(entry)
    assert (repaired.code, repaired.items) == (0, ["web"])
    assert names(machine, "-a") == ["once", "web"]
    assert machine_hook.run(entry, mode="check").changed is False
    assert sorted(machine_hook.run(entry, mode="undo").items) == ["once", "web"]
    assert names(machine, "-a") == []
    assert machine_hook.run(entry, mode="undo").changed is False


def test_deployments_without_a_stack_have_their_own_containers(machine, machine_hook):
    first, second = ({**machine_hook.entry({name: sleeper()}), "deployment_id": f"d{name}"} for name in ("one", "two"))
    for entry in (first, second):
        assert machine_hook.run(entry).code == 0
    assert names(machine) == ["one", "two"]
    assert machine_hook.run(first, mode="undo").items == ["one"]
    assert names(machine) == ["two"]
