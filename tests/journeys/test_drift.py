"""Drift through the whole program: a file changed by hand is found, announced, and repaired when that is allowed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server import Served, served
from support.templates import define, template

pytestmark = pytest.mark.slow

#: A window that is open for one minute in four years.
NEVER = {"maintenance_windows": [{"cron": "0 0 29 2 *", "minutes": 1}]}
CONTENT = "Managed by Stoker\n"


@pytest.fixture
def stoker(tmp_path, database_url) -> Iterator[Served]:
    # A lost agent is known to be offline in less time than by default.
    with served(tmp_path, "--heartbeat-seconds", "10", database=database_url) as running:
        yield running


def definition(server: str, file: Path, **settings: Any) -> dict[str, Any]:
    body = {"path": str(file), "content": CONTENT, "mode": "0644"}
    properties = {"config": {"get_resource": "config"}, "server": server, "name": "motd", **settings}
    return template(
        {
            "config": define("OS::Heat::StructuredConfig", group="file", config=body),
            "motd": define("OS::Heat::StructuredDeployment", **properties),
        }
    )


def checks(stoker: Served, query: str = "") -> list[dict[str, Any]]:
    return stoker.heat("GET", f"/checks{query}").body["checks"]


def state(stoker: Served) -> str:
    (only,) = checks(stoker)
    return only["state"]


def history(stoker: Served) -> list[tuple[str | None, str, str | None]]:
    """Return user, state and status of each run of the only deployment, newest first."""
    (deployment,) = stoker.heat("GET", "/software_deployments").body["software_deployments"]
    listed = stoker.heat("GET", f"/software_deployments/{deployment['id']}/runs").body["runs"]
    return [(run["requested_by"], run["state"], run["status"]) for run in listed]


def messages(stoker: Served, queue: str) -> list[dict[str, Any]]:
    headers = {"X-Auth-Token": stoker.token, "Client-ID": "5f3c9d3e-4f0a-4c1e-9d4b-0a0f5a0a0a0a"}
    answer = stoker.request("GET", f"/messaging/v2/queues/{queue}/messages?limit=20&echo=true", None, headers)
    return [message["body"]["payload"] for message in answer.body["messages"]] if answer.status == 200 else []


def test_drift_is_announced_and_repaired_in_the_window_even_if_agent_and_server_are_killed(stoker, agent, tmp_path):
    file = tmp_path / "motd"
    server = agent.spoken.id
    sinks = {"event_sinks": [{"type": "zaqar-queue", "target": "events", "ttl": 3600}]}
    path = stoker.create_stack("s", definition(server, file, check_interval=5), environment=sinks)
    stoker.await_stack(path)
    stoker.until(lambda: state(stoker) == "IN_SYNC")
    assert checks(stoker, "?state=DRIFTED") == []

    file.write_text("changed by hand\n")
    stoker.until(lambda: state(stoker) == "DRIFTED")
    (drifted,) = checks(stoker, "?state=DRIFTED")
    assert (drifted["server_name"], drifted["name"], drifted["summary"]) == ("web1", "motd", str(file))
    shown = stoker.heat("GET", f"/checks/{drifted['deployment_id']}").body["check"]
    assert "-changed by hand\n+Managed by Stoker" in shown["changes"][0]["diff"]
    began = f"Signal: drift began: {file}"
    events = stoker.heat("GET", f"{path}/resources/motd/events").body["events"]
    assert [event["resource_status_reason"] for event in events].count(began) == 1
    assert [each["resource_status_reason"] for each in messages(stoker, "events")].count(began) == 1
    assert file.read_text() == "changed by hand\n", "a check changes nothing"

    assert stoker.heat("PATCH", "/servers/web1", {"policy": NEVER}).status == 200
    changed = {"template": definition(server, file, check_interval=5, enforce=True), "environment": sinks}
    assert stoker.heat("PUT", path, changed).status == 202
    stoker.await_stack(path, "UPDATE_COMPLETE")
    stoker.until(lambda: history(stoker)[0][:2] == ("enforce", "PENDING_WINDOW"))
    agent.end(signal.SIGKILL)
    stoker.kill9()
    stoker.restart()
    agent.start()
    stoker.until(lambda: stoker.heat("GET", "/servers/web1").body["server"]["status"] == "ONLINE")
    assert file.read_text() == "changed by hand\n", "the window is closed"

    assert stoker.heat("PATCH", "/servers/web1", {"policy": None}).status == 200
    stoker.until(lambda: state(stoker) == "IN_SYNC")
    assert file.read_text() == CONTENT
    assert [run[::2] for run in history(stoker)] == [("enforce", "COMPLETE"), (None, "COMPLETE")]
    assert stoker.stack(path)["stack_status"] == "UPDATE_COMPLETE"
    ended = "Signal: drift ended: the server is in sync"
    stoker.until(lambda: ended in [each["resource_status_reason"] for each in messages(stoker, "events")])
    assert "drift.began" in stoker.output
