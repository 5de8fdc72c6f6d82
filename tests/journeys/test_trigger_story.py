"""
The story that Heat's specification of triggers tells, with real agents and the real `openstack` command.

A component with a script for CREATE, UPDATE, DELETE and BACKUP on three servers: BACKUP is triggered with another
input, watched, read, cancelled half way; what the stack manages stays as it is.
"""

from __future__ import annotations

import json
import os

import pytest
import yaml

from support import forked
from support.agents import own_agent
from support.templates import define, on

BACKUP = """\
#!/bin/sh
echo "backing up to $target"
echo "25 quarter" >> "$STOKER_PROGRESS"
echo $$ > "$WORK/pid"
until [ -e "$WORK/go" ]; do sleep 0.05; done
echo "75 nearly" >> "$STOKER_PROGRESS"
printf '%s' "$target" > "$heat_outputs_path.where"
"""
COMPONENT = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "target", "default": "nowhere"}],
    outputs=[{"name": "where"}],
    options={"on_cancel": '#!/bin/sh\necho undone > "$WORK/undone"\n', "cancel_grace": 5},
    configs=[
        *(
            {"actions": [action], "tool": "script", "config": f'#!/bin/sh\necho {action} >> "$WORK/runs"\n'}
            for action in ("CREATE", "UPDATE", "DELETE")
        ),
        {"actions": ["BACKUP"], "tool": "script", "config": BACKUP},
    ],
)
NAMES = ("one", "two", "three")


def template(names):
    resources = {"component": COMPONENT}
    for name in names:
        resources[f"server_{name}"] = define("OS::Heat::DeployedServer", name=name)
        resources[f"on_{name}"] = on(
            {"get_resource": f"server_{name}"}, "component", name=f"on_{name}", input_values={"target": "disk"}
        )
    return {"heat_template_version": "2021-04-16", "resources": resources}


@pytest.fixture
def agents(stoker, tmp_path):
    from contextlib import ExitStack

    with ExitStack() as running:
        found = {}
        for name in NAMES:
            found[name] = running.enter_context(own_agent(tmp_path / name))
            found[name].enroll(stoker, name)
            found[name].start()
        yield found


def openstack(stoker, *words, form="json"):
    done = forked.run([*words, *(("-f", form) if form else ())], stoker.environment, 120, "openstack")
    assert done.returncode == 0, done.stderr
    return yaml.safe_load(done.stdout) if form else done.stdout


@pytest.mark.parametrize(
    "database_url", ["sqlite"], indirect=True
)  # its parts are tested on each; the command takes long
def test_the_life_of_a_trigger(stoker, agents, tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(json.dumps(template(NAMES)))
    stoker.run("stack", "create", "story", "-t", str(path), "--wait")
    assert all(agent.lines() == ["CREATE"] for agent in agents.values())
    before = managed(stoker)

    made = stoker.json("trigger", "story", "component", "BACKUP", "-i", "target=tape")
    assert (made["total"], made["running"], made["action"]) == (3, 3, "BACKUP")

    def targets(id):
        found = stoker.heat("GET", f"/software_triggers/{id}").body["software_trigger"]["targets"]
        return {each["server_name"]: each for each in found}

    # progress is seen before the end
    stoker.until(lambda: all((each["run"] or {}).get("percent") == 25 for each in targets(made["id"]).values()))
    assert all(each["run"]["state"] == "RUNNING" for each in targets(made["id"]).values())
    of_one = targets(made["id"])["one"]["deployment_id"]
    listed = openstack(stoker, "software", "deployment", "list")
    assert {each["deployment_id"] for each in targets(made["id"]).values()} <= {each["id"] for each in listed}
    shown = openstack(stoker, "software", "deployment", "show", of_one)
    assert (shown["action"], shown["status"]) == ("BACKUP", "IN_PROGRESS")
    assert openstack(stoker, "software", "config", "show", shown["config_id"])["name"] == "on_one_BACKUP"

    for agent in agents.values():
        agent.work.joinpath("go").touch()
    stoker.until(lambda: status(stoker, made["id"]) == "COMPLETE")
    # outputs are read
    assert "tape" in openstack(stoker, "software", "deployment", "output", "show", of_one, "where", form=None)
    (run,) = stoker.heat("GET", f"/software_deployments/{of_one}/runs").body["runs"]
    assert (run["action"], run["status"], run["input_values"]) == ("BACKUP", "COMPLETE", {"target": "tape"})
    assert run["requested_by"] == stoker.environment["OS_USERNAME"]
    assert run["queued_time"] <= run["delivered_time"] <= run["start_time"] <= run["end_time"]
    assert "backing up to tape" in stoker.run("deployment", "logs", of_one).stdout

    # a second one is cancelled half way
    for agent in agents.values():
        agent.work.joinpath("go").unlink()
        agent.work.joinpath("pid").unlink()
    second = stoker.json("trigger", "story", "on_two", "BACKUP")
    agent = agents["two"]
    stoker.until(lambda: agent.lines("pid") != [])
    pid = int(agent.lines("pid")[0])
    stoker.run("trigger", "cancel", second["id"])
    stoker.until(lambda: status(stoker, second["id"]) == "CANCELLED")
    assert not alive(pid)
    assert agent.lines("undone") == ["undone"]
    told = targets(second["id"])["two"]
    assert told["status"] == "CANCELLED"
    assert "Cancelled" in told["status_reason"]
    assert openstack(stoker, "software", "deployment", "show", told["deployment_id"])["status"] == "FAILED"
    assert agents["one"].lines("pid") == []

    # what the stack manages was not touched, and goes on living
    assert managed(stoker) == before
    assert all(agent.lines() == ["CREATE"] for agent in agents.values())
    stoker.run("stack", "delete", "story", "--yes", "--wait")
    assert all(agent.lines() == ["CREATE", "DELETE"] for agent in agents.values())


def status(stoker, id):
    return stoker.heat("GET", f"/software_triggers/{id}").body["software_trigger"]["status"]


def managed(stoker):
    """Everything that is known of the stack's own deployments."""
    resources = openstack(stoker, "stack", "resource", "list", "story")
    ids = {each["physical_resource_id"] for each in resources if each["resource_name"].startswith("on_")}
    listed = stoker.heat("GET", "/software_deployments").body["software_deployments"]
    return {each["id"]: each for each in listed if each["id"] in ids}


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
