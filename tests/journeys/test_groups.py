"""A careful roll-out on real servers: the template of docs/groups.md."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.server import Served

_DOCS = Path(__file__).parents[2] / "docs" / "groups.md"
_TEMPLATE = re.search(r"```yaml\n(.*?)```", _DOCS.read_text(), re.DOTALL)


def releases(stoker: Served) -> list[list[str]]:
    """What each server ran, in its order."""
    return sorted(each.read_text().split() for each in stoker.state_dir.glob("local/*/home/releases"))


def roll_out(stoker: Served, version: str, verb: str = "PUT") -> None:
    assert _TEMPLATE is not None
    said = {"stack_name": "app", "template": _TEMPLATE[1], "parameters": {"version": version}, "timeout_mins": 10}
    path = f"/stacks/app/{shown(stoker)['id']}" if verb == "PUT" else "/stacks"
    assert stoker.heat(verb, path, said).status in (201, 202)


def shown(stoker: Served, name: str = "app") -> Mapping[str, Any]:
    listed = stoker.heat("GET", "/stacks").body["stacks"]
    id = next(each["id"] for each in listed if each["stack_name"] == name)
    found: Mapping[str, Any] = stoker.heat("GET", f"/stacks/{name}/{id}").body["stack"]
    return found


def ended(stoker: Served) -> str:
    stoker.until(lambda: not shown(stoker)["stack_status"].endswith("IN_PROGRESS"), seconds=120)
    return str(shown(stoker)["stack_status"])


def test_an_unhealthy_canary_is_rolled_back_and_no_other_server_changes(stoker):
    roll_out(stoker, "1", "POST")
    assert ended(stoker) == "CREATE_COMPLETE"
    assert releases(stoker) == [["1"]] * 4

    roll_out(stoker, "broken")
    assert ended(stoker) == "UPDATE_FAILED"
    reason = shown(stoker)["stack_status_reason"]
    assert "resources.fleet.resources.0.health: Deployment to server failed" in reason
    assert reason.endswith("; brought back to what it was before: 0")
    assert releases(stoker) == [["1"], ["1"], ["1"], ["1", "broken", "1"]]

    roll_out(stoker, "2")
    assert ended(stoker) == "UPDATE_COMPLETE"
    assert releases(stoker) == [["1", "2"], ["1", "2"], ["1", "2"], ["1", "broken", "1", "2"]]


def test_a_roll_out_continues_after_kill_9_and_nothing_runs_twice(stoker):
    roll_out(stoker, "1", "POST")
    assert ended(stoker) == "CREATE_COMPLETE"
    roll_out(stoker, "2")
    for _ in range(3):
        time.sleep(random.uniform(0.05, 0.8))
        stoker.kill9()
        stoker.restart()
    assert ended(stoker) == "UPDATE_COMPLETE"
    assert releases(stoker) == [["1", "2"]] * 4
