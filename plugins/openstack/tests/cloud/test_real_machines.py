"""Stacks on a real OpenStack whose servers are machines with agents: crashes of Stoker, and outages of the cloud."""

from __future__ import annotations

import os
import random
import time
from datetime import datetime

import pytest

from openstack_support.cloud_machines import CloudStack, RealCloud, real_machines, stoker_at
from support.templates import config, deployment, template

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.filterwarnings("ignore:Support for InfluxDB")]
#: Each machine takes about 35 MB.
SERVERS = int(os.environ.get("STOKER_TEST_OPENSTACK_SERVERS", "50"))
#: How long a part of the cloud is away.
AWAY_SECONDS = 60
RUNS = "/var/tmp/runs"
SERVER = {
    "type": "OS::Nova::Server",
    "properties": {
        "image": "tiny",
        "flavor": "m1.tiny",
        "networks": [{"network": "private"}],
        "user_data_format": "SOFTWARE_CONFIG",
        "agent": "stoker",
    },
}
#: Records each run, and says which word it got and where it ran.
SCRIPT = f"""#!/bin/sh
echo "$name $deploy_action" >> {RUNS}
printf '%s>%s' "$word" "$name" > "$heat_outputs_path.result"
"""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    with real_machines(tmp_path_factory.mktemp("machines")) as running:
        yield running


@pytest.fixture
def stoker(cloud, tmp_path):
    with stoker_at(cloud, tmp_path) as running:
        yield running


def fleet(servers: int) -> dict:
    """Return a template of servers with two deployments each, the second with the result of the next server's first."""
    resources = {"config": config(SCRIPT, inputs=("name", "word"), outputs=("result",))}
    outputs = {}
    for n in range(servers):
        resources[f"server{n}"] = SERVER
        first = {"name": f"first{n}", "word": "start"}
        second = {"name": f"second{n}", "word": {"get_attr": [f"first{(n + 1) % servers}", "result"]}}
        resources[f"first{n}"] = deployment(server=f"server{n}", input_values=first)
        resources[f"second{n}"] = deployment(server=f"server{n}", input_values=second)
        outputs[f"second{n}"] = {"value": {"get_attr": [f"second{n}", "result"]}}
    return template(resources, outputs=outputs)


def kill_until_ended(stack: CloudStack, status: str, chance: random.Random, kills: int) -> int:
    """Kill and restart Stoker at random moments until the operation has ended. Return how often Stoker was killed."""
    done = 0
    while done < kills:
        time.sleep(chance.uniform(3, 20))
        if not stack.show()["stack_status"].endswith("IN_PROGRESS"):
            break
        stack.stoker.kill9()
        stack.stoker.restart()
        done += 1
    stack.end(status, 1200)
    return done


def test_kill_9_runs_each_deployment_once_and_leaves_no_server(cloud: RealCloud, stoker, record_property):
    """A stack of 50 servers and 100 deployments is created and deleted while Stoker is killed at random moments."""
    chance = random.Random(os.environ.get("STOKER_TEST_SEED"))
    began = datetime.now()
    stack = CloudStack.create(stoker, "fleet", fleet(SERVERS))
    kills = kill_until_ended(stack, "CREATE_COMPLETE", chance, 6)
    created = datetime.now()
    servers = cloud.servers()
    assert len(servers) == len({server["name"] for server in servers.values()}) == SERVERS
    assert stack.outputs == {f"second{n}": f"start>first{(n + 1) % SERVERS}>second{n}" for n in range(SERVERS)}
    runs = sorted(line for id in servers for line in cloud.read(id, RUNS).splitlines())
    assert runs == sorted(f"{which}{n} CREATE" for which in ("first", "second") for n in range(SERVERS))
    assert stoker.heat("DELETE", stack.path).status == 204
    kills += kill_until_ended(stack, "DELETE_COMPLETE", chance, 4)
    calls = cloud.list_calls(began)
    seconds = (datetime.now() - began).total_seconds()
    record_property("created_seconds", (created - began).total_seconds())
    record_property("all_seconds", seconds)
    record_property("list_calls", len(calls))
    record_property("kills", kills)
    assert len(calls) <= seconds + kills
    assert cloud.servers() == {}


@pytest.mark.parametrize("how", ["stopped", "ended"])
@pytest.mark.parametrize("part", ["compute", "network", "identity"])
def test_an_outage_of_a_minute_only_delays(cloud: RealCloud, stoker, part, how):
    """
    A part of the cloud is away while stacks are created and deleted. Agents do not depend on the cloud.

    Servers that Nova itself builds while a part ends would fail, so all of them have started before.
    """
    present, leaving = (CloudStack.create(stoker, name, fleet(1)) for name in ("present", "leaving"))
    for stack in (present, leaving):
        stack.end("CREATE_COMPLETE")
    created = CloudStack.create(stoker, "created", fleet(3))
    stoker.until(lambda: _has_begun(cloud, 5 if how == "ended" else 2))
    with getattr(cloud, how)(part):
        away_until = time.monotonic() + AWAY_SECONDS
        if part == "identity":  # the new process has to log in
            stoker.kill9()
            stoker.restart()
        assert stoker.heat("DELETE", leaving.path).status == 204
        later = CloudStack.create(stoker, "later", fleet(2))
        changed = fleet(1)
        changed["resources"]["first0"]["properties"]["input_values"]["word"] = "changed"
        present.update(changed, "UPDATE_COMPLETE")
        assert present.outputs == {"second0": "changed>first0>second0"}
        time.sleep(max(0.0, away_until - time.monotonic()))
    for stack in (created, later):
        stack.end("CREATE_COMPLETE")
    leaving.end("DELETE_COMPLETE")
    assert created.outputs == {f"second{n}": f"start>first{(n + 1) % 3}>second{n}" for n in range(3)}
    assert len(cloud.servers()) == 6
    for stack in (created, later, present):
        stack.delete()
    assert cloud.servers() == {}


def _has_begun(cloud: RealCloud, active: int) -> bool:
    """Return whether this number of servers are active, and another exists."""
    states = [server["status"] for server in cloud.servers().values()]
    return states.count("ACTIVE") >= active and len(states) > 1
