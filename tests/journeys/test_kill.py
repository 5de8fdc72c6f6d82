"""kill -9 at any moment: the stack completes, every script ran once a config, no output is lost."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import threading
import time
from pathlib import Path

import pytest

from agent.conftest import shortened
from support.agents import own_agent
from support.server import Served, served
from support.templates import define, on, template

SERVERS, DEPLOYMENTS = 5, 50


def many(folder: Path) -> dict:
    """Chains on five servers; each script appends a line of its own to one file and reports it."""
    resources = {
        "config": define(
            "OS::Heat::SoftwareConfig",
            group="script",
            inputs=[{"name": "me"}, {"name": "before"}],
            outputs=[{"name": "said"}],
            config=f'#!/bin/sh\necho "$me" >> {folder}/ran\nsleep 0.05\n'
            'echo "out of $me"\nprintf "%s>%s" "$before" "$me" > "$heat_outputs_path.said"\n',
        )
    }
    for s in range(SERVERS):
        resources[f"server{s}"] = define("OS::Nova::Server", user_data_format="SOFTWARE_CONFIG")
    for d in range(DEPLOYMENTS):
        before = {"get_attr": [f"d{d - SERVERS}", "said"]} if d >= SERVERS else ""
        resources[f"d{d}"] = on(
            {"get_resource": f"server{d % SERVERS}"}, input_values={"me": f"d{d}", "before": before}
        )
    last = [f"d{d}" for d in range(DEPLOYMENTS - SERVERS, DEPLOYMENTS)]
    outputs = {
        **{name: {"value": {"get_attr": [name, "said"]}} for name in last},
        **{f"{name}_out": {"value": {"get_attr": [name, "deploy_stdout"]}} for name in last},
    }
    return template(resources, outputs=outputs)


def status(stoker: Served, stack: str) -> str:
    answer = stoker.heat("GET", f"/stacks/{stack}")
    return str(answer.body["stack"]["stack_status"])


def wait(stoker: Served, stack: str) -> str:
    until = time.monotonic() + 120
    while (found := status(stoker, stack)) == "CREATE_IN_PROGRESS":
        assert time.monotonic() < until, "the stack is stuck"
        time.sleep(0.1)
    return found


def assert_whole(stoker: Served, stack: str, folder: Path) -> None:
    shown = stoker.heat("GET", f"/stacks/{stack}").body["stack"]
    outputs = {each["output_key"]: each["output_value"] for each in shown["outputs"]}
    ran = folder.joinpath("ran").read_text().split()
    assert sorted(ran) == sorted(f"d{d}" for d in range(DEPLOYMENTS))
    for s in range(SERVERS):
        chain = [f"d{d}" for d in range(s, DEPLOYMENTS, SERVERS)]
        assert outputs[chain[-1]] == "".join(f">{name}" for name in chain)
        assert outputs[f"{chain[-1]}_out"] == f"out of {chain[-1]}\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_nested", [False, True])
def test_killing_the_server_at_random_moments_loses_nothing(stoker, tmp_path, is_nested):
    body = {"template": many(tmp_path)}
    if is_nested:
        outputs = {name: {"value": {"get_attr": ["inner", name]}} for name in body["template"]["outputs"]}
        files = {"many.yaml": json.dumps(body["template"])}
        body = {"template": template({"inner": {"type": "many.yaml"}}, outputs=outputs), "files": files}
    made = stoker.heat("POST", "/stacks", {"stack_name": "many", "timeout_mins": 10, **body})
    stack = f"many/{made.body['stack']['id']}"
    for _ in range(4):
        time.sleep(random.uniform(0.05, 0.6))
        stoker.kill9()
        time.sleep(random.uniform(0, 0.3))
        stoker.restart()

    assert wait(stoker, stack) == "CREATE_COMPLETE"
    assert_whole(stoker, stack, tmp_path)


@pytest.mark.slow
def test_killing_the_server_during_a_create_leaves_all_or_nothing(stoker, tmp_path):
    """Whether the request was answered or not: the stack is there and completes, or was never there."""
    body = {"stack_name": "many", "template": many(tmp_path), "timeout_mins": 10}
    assert stoker.token

    def create() -> None:
        with contextlib.suppress(OSError):
            stoker.heat("POST", "/stacks", body)

    project = stoker.project
    asking = threading.Thread(target=create)
    asking.start()
    time.sleep(random.uniform(0, 0.08))
    stoker.kill9()
    asking.join()
    stoker.restart()
    found = stoker.request("GET", f"/v1/{project}/stacks", headers={"X-Auth-Token": stoker.token}).body["stacks"]
    if found:
        stack = f"many/{found[0]['id']}"
        assert wait(stoker, stack) == "CREATE_COMPLETE"
        assert_whole(stoker, stack, tmp_path)
    else:
        assert not tmp_path.joinpath("ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize("cancel", [False, True])
def test_a_run_that_ended_after_the_backup_of_a_restored_database_completes(tmp_path, cancel):
    """Its result was accepted and is lost, and the agent reports it again."""
    with served(tmp_path) as stoker, own_agent(tmp_path / "agent") as agent:
        agent.enroll(stoker, "web1")
        # The restored document may be the newest one that the agent has.
        agent.program = shortened({"agent._UPKEEP_SECONDS": 0.2, "results.LOST_SECONDS": 0.5})
        agent.start()
        script = "#!/bin/sh\necho ran >>$WORK/runs; until test -e $WORK/go; do sleep 0.05; done\n"
        config = stoker.heat("POST", "/software_configs", {"name": "c", "group": "script", "config": script}).body
        server = stoker.heat("GET", "/servers/web1").body["server"]
        body = {"config_id": config["software_config"]["id"], "server_id": server["id"], "action": "CREATE"}
        created = stoker.heat("POST", "/software_deployments", {**body, "status": "IN_PROGRESS"}).body
        deployment = created["software_deployment"]
        path = f"/software_deployments/{deployment['id']}"

        def status() -> str:
            return str(stoker.heat("GET", path).body["software_deployment"]["status"])

        stoker.until(agent.lines)
        stoker.stop()
        backup = tmp_path / "backup"
        shutil.copytree(stoker.state_dir, backup)
        stoker.restart()
        agent.work.joinpath("go").touch()
        stoker.until(lambda: status() == "COMPLETE")
        folder = agent.root / "state" / "runs" / deployment["config_id"]
        stoker.until(folder.joinpath("acknowledged").exists)
        stoker.stop()
        shutil.rmtree(stoker.state_dir)
        shutil.copytree(backup, stoker.state_dir)
        stoker.restart()
        if cancel:
            stoker.heat("POST", f"{path}/cancel", {})
        stoker.until(lambda: status() == "COMPLETE")
        assert agent.lines() == ["ran"]
