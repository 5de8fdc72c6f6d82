"""The hooks of the groups docker-cmd, and docker-compose with Compose 2, with a real dockerd."""

from __future__ import annotations

import json

import pytest

from hooks.conftest import MachineHook
from hooks.containers import IMAGE, container_machine

pytestmark = pytest.mark.slow

OWNER = {"deploy_stack_id": "web/1", "deploy_resource_name": "containers"}


@pytest.fixture(scope="module")
def machine(machines, container_base):
    with container_machine(machines, container_base, "docker") as machine:
        yield machine


@pytest.fixture(autouse=True)
def clean(machine):
    yield
    machine.run(["sh", "-c", "docker ps -aq | xargs -r docker rm -f; docker network prune -f"])


@pytest.fixture
def docker_cmd(machine, tmp_path):
    return MachineHook("docker-cmd", tmp_path, machine=machine)


@pytest.fixture
def compose(machine, tmp_path):
    return MachineHook("docker-compose", tmp_path, machine=machine)


def names(machine, *words):
    return sorted(machine.run(["docker", "ps", *words, "--format", "{{.Names}}"]).stdout.split())


def labels(machine, name):
    return json.loads(machine.run(["docker", "inspect", "--format", "{{json .Config.Labels}}", name]).stdout)


def sleeper(**more):
    return {"image": IMAGE, "command": "sleep infinity", **more}


def test_containers_start_in_order_with_their_settings_and_labels(machine, docker_cmd):
    config = {
        "web": sleeper(start_order=2, environment=["MODE=production"], volumes=["/srv:/srv"], user="65534"),
        "prepare": {
            **{"image": IMAGE, "start_order": 1, "detach": False, "volumes": ["/srv:/srv"], "net": "none"},
            "command": ["sh", "-c", "echo prepared | cat - > /srv/ready; echo to stdout; echo to stderr >&2"],
        },
    }
    first = docker_cmd.run(entry := docker_cmd.entry(config, **OWNER))
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


def test_an_update_replaces_the_containers_of_the_deployment_and_no_others(machine, docker_cmd):
    machine.run(["docker", "run", "-d", "--name", "theirs", IMAGE, "sleep", "infinity"])
    other = {**OWNER, "deploy_resource_name": "other"}
    docker_cmd.run(docker_cmd.entry({"else": sleeper()}, **other))
    docker_cmd.run(docker_cmd.entry({"web": sleeper(), "old": sleeper()}, **OWNER))
    process = machine.run(["docker", "inspect", "--format", "{{.Id}}", "web"]).stdout
    updated = docker_cmd.run(entry := docker_cmd.entry({"web": sleeper()}, **OWNER, deploy_action="UPDATE"))
    assert updated.code == 0
    assert names(machine) == ["else", "theirs", "web"]
    assert machine.run(["docker", "inspect", "--format", "{{.Id}}", "web"]).stdout != process
    assert labels(machine, "web")["config_id"] == entry["id"]
    removed = docker_cmd.run(docker_cmd.entry({"web": sleeper()}, **OWNER, deploy_action="DELETE"))
    assert (removed.code, removed.items) == (0, ["web"])
    assert names(machine, "-a") == ["else", "theirs"]


def test_a_name_that_is_taken_gets_a_suffix(machine, docker_cmd):
    machine.run(["docker", "run", "-d", "--name", "web", IMAGE, "sleep", "infinity"])
    config = {"web": sleeper(start_order=1), "mark": {"action": "exec", "start_order": 2, "command": "web touch /mark"}}
    outcome = docker_cmd.run(entry := docker_cmd.entry(config, **OWNER))
    assert outcome.code == 0, outcome.stderr
    (ours,) = names(machine, "--filter", f"label=config_id={entry['id']}")
    assert ours.startswith("web-")
    machine.run(["docker", "exec", ours, "test", "-e", "/mark"])
    assert machine.run(["docker", "exec", "web", "test", "-e", "/mark"], check=False).returncode == 1


def test_exit_codes_decide_the_result_and_all_containers_run(machine, docker_cmd):
    def ends(code, order, **more):
        return {"image": IMAGE, "command": ["sh", "-c", f"exit {code}"], "detach": False, "start_order": order, **more}

    accepted = docker_cmd.run(docker_cmd.entry({"known": ends(3, 1, exit_codes=[0, 3])}, **OWNER))
    assert accepted.code == 0
    config = {"first": ends(4, 1), "second": ends(0, 2), "third": ends(5, 3)}
    failed = docker_cmd.run(docker_cmd.entry(config, **OWNER))
    assert failed.code == 4
    assert [change["outcome"] for change in failed.report["deploy_changes"]] == [
        *("changed", "failed", "changed", "failed")
    ]
    missing = docker_cmd.run(docker_cmd.entry({"none": {"image": "localhost/none:1"}}, **OWNER))
    assert missing.code == 125
    assert "localhost/none:1" in missing.stderr


def test_check_reports_a_container_that_stopped_and_a_repetition_starts_only_that(machine, docker_cmd):
    once = {"image": IMAGE, "command": "true", "detach": False}
    entry = docker_cmd.entry({"web": sleeper(), "once": once}, **OWNER)
    docker_cmd.run(entry)
    assert docker_cmd.run(entry, mode="check").changed is False, "a container that ran once need not run"
    assert docker_cmd.run(entry).changed is False
    machine.run(["docker", "stop", "-t", "0", "web"])
    drift = docker_cmd.run(entry, mode="check")
    assert (drift.changed, drift.report["deploy_changes"][0]["diff"]) == (True, "not running")
    repaired = docker_cmd.run(entry)
    assert (repaired.code, repaired.items) == (0, ["web"])
    assert names(machine, "-a") == ["once", "web"]
    assert docker_cmd.run(entry, mode="check").changed is False
    assert sorted(docker_cmd.run(entry, mode="undo").items) == ["once", "web"]
    assert names(machine, "-a") == []
    assert docker_cmd.run(entry, mode="undo").changed is False


def test_deployments_without_a_stack_have_their_own_containers(machine, docker_cmd):
    first, second = ({**docker_cmd.entry({name: sleeper()}), "deployment_id": f"d{name}"} for name in ("one", "two"))
    for entry in (first, second):
        assert docker_cmd.run(entry).code == 0
    assert names(machine) == ["one", "two"]
    assert docker_cmd.run(first, mode="undo").items == ["one"]
    assert names(machine) == ["two"]


def services(machine):
    """Return the services of running containers."""
    form = '{{.Label "com.docker.compose.service"}}'
    return sorted(machine.run(["docker", "ps", "--format", form]).stdout.split())


def project(**web):
    return {"services": {"web": {"image": IMAGE, "command": "sleep infinity", "init": True, **web}}}


def test_services_come_up_change_and_go(machine, compose):
    first = compose.run(entry := compose.entry(project()))
    assert (first.code, first.changed, len(first.items)) == (0, True, 1), first.stderr
    label = '{{index .Config.Labels "com.docker.compose.project"}}'
    container = machine.run(["docker", "ps", "-q"]).stdout.strip()
    name = machine.run(["docker", "inspect", "--format", label, container]).stdout.strip()
    assert name == entry["name"], "the project has the name of the deployment"
    again = compose.run(entry)
    assert (again.code, again.changed) == (0, False)
    both = {"services": {**project(environment={"A": "b"})["services"], "extra": project()["services"]["web"]}}
    updated = compose.run(compose.entry(json.dumps(both), deploy_action="UPDATE"))
    assert (updated.code, updated.changed, services(machine)) == (0, True, ["extra", "web"])
    compose.run(compose.entry(project()))
    assert services(machine) == ["web"], "services that the file no longer names are removed"
    gone = compose.run(compose.entry(project(), deploy_action="DELETE"))
    assert (gone.code, gone.changed, machine.run(["docker", "ps", "-aq"]).stdout) == (0, True, "")
    assert compose.run(entry, mode="undo").changed is False


def test_files_with_variables_are_inputs(machine, compose):
    files = [{"file_name": "web.env", "content": "COLOR=green\n"}]
    for value in (files, json.dumps(files), str(files)):
        compose.run(compose.entry(project(env_file="web.env"), env_files=value))
        container = machine.run(["docker", "ps", "-q"]).stdout.strip()
        assert "COLOR=green" in machine.run(["docker", "exec", container, "env"]).stdout
    outside = compose.run(compose.entry(project(), env_files=[{"file_name": "../x", "content": ""}]))
    assert "must be a path below the project's directory" in outside.report["deploy_status_reason"]


def test_the_run_waits_until_services_are_healthy_and_fails_without_an_image(machine, compose):
    health = {"test": "test -e /healthy", "interval": "0.2s", "retries": 100}
    ready = project(command="sh -c 'sleep 1; touch /healthy; sleep infinity'", healthcheck=health)
    assert compose.run(compose.entry(ready, (), {"wait": True})).code == 0
    container = machine.run(["docker", "ps", "-q"]).stdout.strip()
    assert machine.run(["docker", "inspect", "--format", "{{.State.Health.Status}}", container]).stdout == "healthy\n"
    never = project(healthcheck={**health, "test": "false", "retries": 1})
    assert compose.run(compose.entry(never, (), {"wait": True, "wait_timeout": 20})).code == 1
    failed = compose.run(compose.entry(project(image="localhost/none:1", pull_policy="never")))
    assert (failed.code, "localhost/none:1" in failed.stderr) == (1, True)


def test_check_reports_services_that_stopped_or_differ(machine, compose):
    compose.run(entry := compose.entry(project()))
    same = compose.run(entry, mode="check")
    assert (same.code, same.changed) == (0, False), same
    machine.run(["sh", "-c", "docker stop -t 0 $(docker ps -q)"])
    stopped = compose.run(entry, mode="check")
    assert (stopped.code, stopped.changed) == (0, True)
    assert services(machine) == []
    compose.run(entry)
    assert compose.run(compose.entry(project(environment={"A": "b"})), mode="preview").changed is True
    assert compose.run(entry, mode="check").changed is False, "a preview changes nothing"


def test_deployments_whose_configs_have_one_name_have_their_own_projects(machine, compose):
    entries = [
        {
            **compose.entry({"services": {name: project()["services"]["web"]}}),
            "deployment_id": f"{name}-deployment",
        }
        for name in ("one", "two")
    ]
    for entry in (*entries, *entries):
        assert compose.run(entry).code == 0
    assert services(machine) == ["one", "two"]
    assert compose.run(entries[0], mode="undo").changed is True
    assert services(machine) == ["two"]
