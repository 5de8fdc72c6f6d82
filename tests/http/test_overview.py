"""The overview: each number is that of a list, exactly."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from stoker.model.deployment import Check, CheckState
from stoker.model.server import AgentAccess, Kind, Server
from stoker.store import checks, servers, triggers
from stoker.store import deployments as deployments_store
from support.in_process import Inside
from support.templates import config, define, template

pytestmark = pytest.mark.filterwarnings("ignore")
VERSIONS = (None, "0.0.1")


def add_servers(site: Inside) -> list[Server]:
    """A server in each state that the columns can have."""

    def add(tx: Any) -> list[Server]:
        seen = (None, tx.now, tx.now - timedelta(days=1))
        combinations = product(AgentAccess, Kind, (0, 1), seen, VERSIONS)
        made = [
            Server(
                id=f"id-{number:03}",
                project_id=site.project,
                name=f"server-{number}",
                kind=kind,
                created_at=tx.now,
                agent_access=access,
                key_generation=generation,
                last_seen=last_seen,
                agent_version=version,
            )
            for number, (access, kind, generation, last_seen, version) in enumerate(combinations)
        ]
        for server in made:
            servers.add(tx, server)
        return made

    return site.store.write(add)


def test_servers_are_listed_by_state(site):
    made = add_servers(site)
    shown = {server["id"]: server for server in site.call("GET", "/servers")["servers"]}
    statuses = {server["status"] for server in shown.values()}
    assert statuses == {"ONLINE", "OFFLINE", "ENROLLING", "NEVER_SEEN", "PENDING_APPROVAL", "LEFT"}
    for status in statuses:
        listed = [server["id"] for server in site.call("GET", f"/servers?status={status}")["servers"]]
        assert listed == [server.id for server in made if shown[server.id]["status"] == status]
    some = site.call("GET", "/servers?status=LEFT&status=OFFLINE&agent_outdated=true&name=server-*&limit=3")["servers"]
    expected = [
        server.id for server in made if shown[server.id]["status"] in ("LEFT", "OFFLINE") and server.agent_version
    ]
    assert [server["id"] for server in some] == expected[:3]


def test_each_number_is_that_of_its_list(site):
    made = add_servers(site)
    online = next(server for server in made if server.last_seen and server.agent_access is AgentAccess.ALLOWED)
    config_id = site.create("software_configs", name="c", group="script", config="true")["id"]
    body = {"config_id": config_id, "server_id": online.id, "signal_transport": "STOKER_SIGNAL"}
    deployments = [site.create("software_deployments", **body)["id"] for _ in range(3)]
    waiting = define("OS::Heat::WaitCondition", handle={"get_resource": "handle"}, timeout=60)
    resources = {"handle": {"type": "OS::Heat::WaitConditionHandle"}, "waiting": waiting}
    site.create_stack("running", template(resources))
    site.create_stack("failing", template({"failing": define("OS::Heat::TestResource", fail=True), "c": config()}))
    trigger = {"config_id": config_id, "servers": [online.id]}
    ids = [site.create("software_triggers", **trigger)["id"] for _ in range(4)]
    for name, cron in (("soon", "* * * * *"), ("late", "0 0 29 2 *")):
        site.create("software_schedules", name=name, trigger=trigger, cron=cron)

    def change(tx: Any) -> None:
        for id, age in ((ids[0], timedelta(hours=1)), (ids[1], timedelta(hours=23)), (ids[2], timedelta(days=2))):
            running = triggers.get(tx, id, for_update=True)
            triggers.save(tx, replace(running, status="FAILED", ended_at=tx.now - age))
        for id, state in zip(deployments, (CheckState.DRIFTED, CheckState.DRIFTED, CheckState.IN_SYNC), strict=True):
            checks.add(tx, Check(deployment_id=id, server_id=online.id, config_id=config_id, since=tx.now, state=state))

    def fail(tx: Any) -> None:
        for id, age in zip(deployments, (timedelta(hours=1), timedelta(hours=23), timedelta(days=2)), strict=True):
            ended = deployments_store.get(tx, id, for_update=True)
            deployments_store.save(tx, replace(ended, status="FAILED", ended_at=tx.now - age))

    site.store.write(change)
    site.store.write(fail)
    answer = site.call("GET", "/overview")
    overview = answer["overview"]
    for name, tally in overview.items():
        (listed,) = (part for part in site.call("GET", f"/{tally['path']}").values() if isinstance(part, list))
        assert (name, len(listed)) == (name, tally["count"])
    counts = {name: tally["count"] for name, tally in overview.items()}
    assert counts == {
        "running_stacks": 1,
        "running_triggers": 1,
        "failed_stacks": 1,
        "failed_triggers": 2,
        "failed_deployments": 2,
        "drifted_deployments": 2,
        "online_servers": 12,
        "offline_servers": 12,
        "unapproved_servers": 36,
        "outdated_agents": 54,
        "schedules_of_next_day": 1,
    }
    named = Counter((highlight["kind"], highlight["status"]) for highlight in answer["highlights"])
    assert named == {
        ("stack", "CREATE_IN_PROGRESS"): 1,
        ("trigger", "IN_PROGRESS"): 1,
        ("stack", "CREATE_FAILED"): 1,
        ("trigger", "FAILED"): 2,
        ("deployment", "FAILED"): 2,
        ("check", "DRIFTED"): 2,
        ("schedule", "SCHEDULED"): 1,
    }
    failures = [highlight["id"] for highlight in answer["highlights"] if highlight["kind"] == "deployment"]
    assert failures == deployments[:2]


def test_the_overview_has_a_fixed_number_of_statements(site):
    before = site.counted(lambda: site.call("GET", "/overview"))
    add_servers(site)
    assert site.counted(lambda: site.call("GET", "/overview")) == before <= 20
