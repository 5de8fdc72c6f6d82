"""Signals that stacks wait for, put into a real Swift or posted to a real Zaqar: each of them counts, once."""

from __future__ import annotations

import json

from support.backends import CLIENT, ask, queues_of, swift_flags, zaqar_flags
from support.server import served
from support.templates import define, template


def waiting(kind: str, handle: dict, count: int, timeout: int = 600) -> dict:
    """``kind``: SwiftSignal or WaitCondition."""
    properties = {"handle": {"get_resource": "handle"}, "count": count, "timeout": timeout}
    resources = {"handle": handle, "wait": define(f"OS::Heat::{kind}", **properties)}
    shown = {
        "data": {"value": {"get_attr": ["wait", "data"]}},
        "url": {"value": {"get_resource": "handle"}},
        "signal": {"value": {"get_attr": ["handle", "signal" if kind == "WaitCondition" else "endpoint"]}},
    }
    return template(resources, outputs=shown)


def swift_signal(count: int) -> dict:
    return waiting("SwiftSignal", {"type": "OS::Heat::SwiftSignalHandle"}, count)


def wait_condition(transport: str, count: int) -> dict:
    handle = define("OS::Heat::WaitConditionHandle", signal_transport=transport)
    return waiting("WaitCondition", handle, count)


def named(swift, path: str = "") -> list[str]:
    """Names of the account's containers, or of what is in one."""
    login = ask("GET", f"{swift.url}/auth/v1.0", headers={"X-Auth-User": "proj:user", "X-Auth-Key": "pw"})
    headers = {"X-Auth-Token": login.headers["X-Auth-Token"]}
    return [each["name"] for each in ask("GET", f"{swift.url}/v1/AUTH_proj{path}?format=json", headers=headers).body]


def url_of(stoker, swift, stack: str) -> str:
    """Where to put signals, once Stoker's containers are there."""
    stoker.until(lambda: stoker.outputs(stack).get("url"))
    url = str(stoker.outputs(stack)["url"])
    stoker.until(lambda: url.split("/")[5] in named(swift), 60)
    return url


def test_every_version_of_an_object_is_a_signal(tmp_path, database_url, swift):
    with served(tmp_path, *swift_flags(swift, tmp_path), database=database_url) as stoker:
        stack = stoker.create_stack("versions", swift_signal(5))
        url = url_of(stoker, swift, stack)
        *_, container, _, id = url.partition("?")[0].split("/")
        assert url.startswith(swift.url)
        # At once, one over the other: whoever looks finds the last one only.
        for number in range(3):
            assert ask("PUT", url, {"data": f"first {number}"}).status == 201
        stoker.until(lambda: len(said(stoker, stack)) == 3, 60)
        stoker.kill9()
        assert ask("PUT", url, {"data": "killed", "id": "own"}).status == 201
        stoker.restart()
        stoker.until(lambda: len(said(stoker, stack)) == 4, 60)
        assert stoker.stack(stack)["stack_status"] == "CREATE_IN_PROGRESS"
        # An empty one is a success; what is no signal counts for nothing.
        assert ask("PUT", url, "nonsense").status == 201
        assert ask("PUT", url).status == 201
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
        expected = {"1": "first 0", "2": "first 1", "3": "first 2", "own": "killed", "5": None}
        assert said(stoker, stack) == expected
        assert len([name for name in named(swift, f"/{container}-versions") if id in name]) == 5
        assert stoker.heat("DELETE", stack).status == 204
        stoker.until(lambda: ask("HEAD", url).status == 404, 60)
        # Swift updates its listings after it has deleted an object.
        for listed in (container, f"{container}-versions"):
            stoker.until(lambda listed=listed: not named(swift, f"/{listed}"), 60)


def said(stoker, stack) -> dict:
    """What the wait has heard so far, by ids."""
    shown = stoker.heat("GET", f"{stack}/resources/handle/metadata").body["metadata"]
    return {id: each["data"] for id, each in shown.items()}


def test_a_failure_in_an_overwritten_version_fails_conditions_of_both_kinds(tmp_path, swift, zaqar):
    with served(tmp_path, *swift_flags(swift, tmp_path), *zaqar_flags(zaqar)) as stoker:
        failing = stoker.create_stack("failing", swift_signal(9))
        place = url_of(stoker, swift, failing)
        for signal in ({"status": "FAILURE", "reason": "no disk"}, {"data": "well"}):
            assert ask("PUT", place, signal).status == 201
        stoker.until(lambda: stoker.stack(failing)["stack_status"] == "CREATE_FAILED", 60)
        assert "no disk" in stoker.heat("GET", failing).body["stack"]["stack_status_reason"]
        by_object = stoker.create_stack("by-object", wait_condition("TEMP_URL_SIGNAL", 2))
        by_queue = stoker.create_stack("by-queue", wait_condition("ZAQAR_SIGNAL", 2))
        stoker.until(lambda: stoker.outputs(by_object).get("signal") and stoker.outputs(by_queue).get("signal"))
        url = json.loads(stoker.outputs(by_object)["signal"])["alarm_url"]
        queue = json.loads(stoker.outputs(by_queue)["signal"])["queue_id"]
        stoker.until(lambda: queue in queues_of(zaqar, stoker.project), 60)
        headers = {**CLIENT, "X-Project-Id": stoker.project}
        for number in range(2):
            assert ask("PUT", url, {"data": number}).status == 201
            posted = {"messages": [{"body": {"data": number}}]}
            assert ask("POST", f"{zaqar.url}/v2/queues/{queue}/messages", posted, headers).status == 201
        for stack in (by_object, by_queue):
            stoker.until(lambda stack=stack: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
            assert json.loads(stoker.outputs(stack)["data"]) == {"1": 0, "2": 1}
