"""Our agent at queues without a login: by signed URLs that open one queue to one method, and end with its owner."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from stoker.messaging.signed_urls import AGENTS_PERIOD, agents_until
from support.agents import own_agent
from support.backends import CLIENT, ask, greetings, runs
from support.server import Served, served

pytestmark = pytest.mark.slow

SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\nprintf "$who" >"$heat_outputs_path.said"\n'
DENIED = 404


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("signed")) as running:
        yield running


def queued(*names: str, agent: str | None = "stoker") -> dict[str, Any]:
    named = {"agent": agent} if agent else {}
    return greetings("ZAQAR_MESSAGE", dict.fromkeys(names, "ZAQAR_SIGNAL"), script=SCRIPT, **named)


def section(stoker: Served, stack: str) -> dict[str, str]:
    return stoker.outputs(stack)["agent"]["zaqar"]


def opening(said: dict[str, str], prefix: str = "") -> dict[str, str]:
    """Headers, as the agent sends them."""
    return {
        **CLIENT,
        "X-Project-Id": said[f"{prefix}project_id"],
        "URL-Paths": said[f"{prefix}url_paths"],
        "URL-Methods": said[f"{prefix}url_methods"],
        "URL-Expires": said[f"{prefix}url_expires"],
        "URL-Signature": said[f"{prefix}url_signature"],
    }


def messages(said: dict[str, str], prefix: str = "") -> str:
    return f"{said[f'{prefix}messaging_url']}/v2/queues/{said[f'{prefix}queue_id']}/messages"


def found_runs(stoker: Served, said: dict[str, str]) -> list[dict[str, Any]]:
    """The runs of the newest document, once it has some."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        got = ask("GET", f"{messages(said)}?echo=true", headers=opening(said))
        assert got.status == 200, got.raw
        found[:] = [run for each in got.body["messages"] for run in runs(each["body"])]
        return bool(found)

    stoker.until(there)
    return found


def test_a_signed_queue_works_without_a_login(stoker, tmp_path):
    stack = stoker.create_stack("signed", queued("one", "two"))
    said = section(stoker, stack)
    assert sorted(said) == sorted(
        ("queue_id", "messaging_url", "project_id", "url_paths", "url_methods", "url_expires", "url_signature")
    )
    for run in found_runs(stoker, said):
        assert not [name for name in run if re.search("password|user|auth", name)]
    with own_agent(tmp_path / "agent", {"zaqar": said}) as agent:
        agent.start()
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
        agent.end(signal.SIGKILL)
        assert stoker.heat("PUT", stack, {"template": queued("one", "two", "three")}).status == 202
        agent.start()
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE", 60)
        assert sorted(agent.lines()) == ["one", "three", "two"]
        assert said["url_signature"] not in agent.log


def test_a_signed_url_ends_when_its_owner_is_suspended_or_deleted(stoker):
    stack = stoker.create_stack("deleted", queued("one"))
    said = section(stoker, stack)
    (run,) = found_runs(stoker, said)
    post = "deploy_"
    result = {"messages": [{"body": {"deploy_status_code": 0}}]}
    assert ask("POST", messages(run, post), result, opening(run, post)).status == 201
    stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE")

    def answers() -> list[int]:
        read = ask("GET", messages(said), headers=opening(said)).status
        return [read, ask("POST", messages(run, post), result, opening(run, post)).status]

    assert answers() == [200, 201]
    for action, expected in (("suspend", [DENIED] * 2), ("resume", [200, 201])):
        assert stoker.heat("POST", f"{stack}/actions", {action: None}).status in (200, 201)
        stoker.until(lambda action=action: stoker.stack(stack)["stack_status"] == f"{action.upper()}_COMPLETE")
        assert answers() == expected
    assert stoker.heat("DELETE", stack).status == 204
    stoker.until(lambda: answers() == [DENIED] * 2)
    listed = stoker.request("GET", "/messaging/v2/queues", headers={"X-Auth-Token": stoker.token, **CLIENT}).body
    assert said["queue_id"] not in {each["name"] for each in listed["queues"]}
    assert run["deploy_queue_id"] not in {each["name"] for each in listed["queues"]}


def test_a_change_between_login_and_signed_url_arrives_by_the_previous_source(stoker, tmp_path):
    """From a login to a signed URL and back: the section comes through what was there before."""
    stack = stoker.create_stack("other", queued("one", agent=None))
    with own_agent(tmp_path / "agent", {"zaqar": section(stoker, stack)}) as agent:
        agent.start()
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
        assert "password" in agent.kept["sections"]["zaqar"]
        for named, key, absent in (("stoker", "url_signature", "password"), (None, "password", "url_signature")):
            assert stoker.heat("PUT", stack, {"template": queued("one", agent=named)}).status == 202
            stoker.until(lambda key=key: key in agent.kept["sections"]["zaqar"], 60)
            assert absent not in agent.kept["sections"]["zaqar"]
        assert agent.lines() == ["one"]


def test_an_agents_signed_url_expires_two_to_three_periods_from_now():
    """From two periods to three after now, and the same all through a period that differs from one to the next."""
    now = datetime(2030, 1, 1, tzinfo=UTC)
    ends = []
    for _ in range(50):
        id = str(uuid4())
        until = agents_until(id, now)
        assert 2 * AGENTS_PERIOD < until - now <= 3 * AGENTS_PERIOD
        turn = until - 2 * AGENTS_PERIOD
        assert agents_until(id, turn - timedelta(seconds=1)) == until
        assert agents_until(id, turn) == until + AGENTS_PERIOD
        ends.append(until)
    assert len(set(ends)) > 40
