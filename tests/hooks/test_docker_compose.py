"""The hook of the group docker-compose with Compose 2 and a real dockerd."""

from __future__ import annotations

import json

import pytest

from hooks.containers import IMAGE, container_machine

GROUP = "docker-compose"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def machine(machines, container_base):
    with container_machine(machines, container_base, "docker") as machine:
        yield machine


@pytest.fixture(autouse=True)
def clean(machine):
    yield
    machine.run(["sh", "-c", "docker ps -aq | xargs -r docker rm -f; docker network prune -f"])


def services(machine):
    """Return the services of running containers."""
    form = '{{.Label "com.docker.compose.service"}}'
    return sorted(machine.run(["docker", "ps", "--format", form]).stdout.split())


def project(**web):
    return {"services": {"web": {"image": IMAGE, "command": "sleep infinity", "init": True, **web}}}


def test_services_come_up_change_and_go(machine, machine_hook):
    first = machine_hook.run(entry := machine_hook.entry(project()))
    assert (first.code, first.changed, len(first.items)) == (0, True, 1), first.stderr
    label = '{{index .Config.Labels "com.docker.compose.project"}}'
    container = machine.run(["docker", "ps", "-q"]).stdout.strip()
    name = machine.run(["docker", "inspect", "--format", label, container]).stdout.strip()
    assert name == entry["name"], "the project has the name of the deployment"
    again = machine_hook.run(entry)
    assert (again.code, again.changed) == (0, False)
    both = {"services": {**project(environment={"A": "b"})["services"], "extra": project()["services"]["web"]}}
    updated = machine_hook.run(machine_hook.entry(json.dumps(both), deploy_action="UPDATE"))
    assert (updated.code, updated.changed, services(machine)) == (0, True, ["extra", "web"])
    machine_hook.run(machine_hook.entry(project()))
    assert services(machine) == ["web"], "services that the file no longer names are removed"
    gone = machine_hook.run(machine_hook.entry(project(), deploy_action="DELETE"))
    assert (gone.code, gone.changed, machine.run(["docker", "ps", "-aq"]).stdout) == (0, True, "")
    assert machine_hook.run(entry, mode="undo").changed is False


def test_files_with_variables_are_inputs(machine, machine_hook):
    files = [{"file_name": "web.env", "content": "COLOR=green\n"}]
    for value in (files, json.dumps(files), str(files)):
        machine_hook.run(machine_hook.entry(project(env_file="web.env"), env_files=value))
        container = machine.run(["docker", "ps", "-q"]).stdout.strip()
        assert "COLOR=green" in machine.run(["docker", "exec", container, "env"]).stdout
    outside = machine_hook.run(machine_hook.entry(project(), env_files=[{"file_name": "../x", "content": ""}]))
    assert "must be a path below the project's directory" in outside.report["deploy_status_reason"]


def test_the_run_waits_until_services_are_healthy_and_fails_without_an_image(machine, machine_hook):
    health = {"test": "test -e /healthy", "interval": "0.2s", "retries": 100}
    ready = project(command="sh -c 'sleep 1; touch /healthy; sleep infinity'", healthcheck=health)
    assert machine_hook.run(machine_hook.entry(ready, (), {"wait": True})).code == 0
    container = machine.run(["docker", "ps", "-q"]).stdout.strip()
    assert machine.run(["docker", "inspect", "--format", "{{.State.Health.Status}}", container]).stdout == "healthy\n"
    never = project(healthcheck={**health, "test": "false", "retries": 1})
    assert machine_hook.run(machine_hook.entry(never, (), {"wait": True, "wait_timeout": 20})).code == 1
    failed = machine_hook.run(machine_hook.entry(project(image="localhost/none:1", pull_policy="never")))
    assert (failed.code, "localhost/none:1" in failed.stderr) == (1, True)


def test_check_reports_services_that_stopped_or_differ(machine, machine_hook):
    machine_hook.run(entry := machine_hook.entry(project()))
    same = machine_hook.run(entry, mode="check")
    assert (same.code, same.changed) == (0, False), same
    machine.run(["sh", "-c", "docker stop -t 0 $(docker ps -q)"])
    stopped = machine_hook.run(entry, mode="check")
    assert (stopped.code, stopped.changed) == (0, True)
    assert services(machine) == []
    machine_hook.run(entry)
    assert machine_hook.run(machine_hook.entry(project(environment={"A": "b"})), mode="preview").changed is True
    assert machine_hook.run(entry, mode="check").changed is False, "a preview changes nothing"


def test_deployments_whose_configs_have_one_name_have_their_own_projects(machine, machine_hook):
    entries = [
        {
            **machine_hook.entry({"services": {name: project()["services"]["web"]}}),
            "deployment_id": f"{name}-deployment",
        }
        for name in ("one", "two")
    ]
    for entry in (*entries, *entries):
        assert machine_hook.run(entry).code == 0
    assert services(machine) == ["one", "two"]
    assert machine_hook.run(entries[0], mode="undo").changed is True
    assert services(machine) == ["two"]
