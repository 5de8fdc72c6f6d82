"""A careful roll-out on real servers: the template of docs/groups.md."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

from support.server import Served

_DOCS = Path(__file__).parents[2] / "docs" / "groups.md"
_TEMPLATE = re.search(r"```yaml\n(.*?)```", _DOCS.read_text(), re.DOTALL)


def releases(stoker: Served) -> list[list[str]]:
    """What each server ran, in its order."""
    return sorted(each.read_text().split() for each in stoker.state_dir.glob("local/*/home/releases"))


def test_an_unhealthy_canary_is_rolled_back_alone_and_no_kill_of_the_service_repeats_a_run(stoker):
    def roll_out(version: str) -> None:
        body = {"template": template, "parameters": {"version": version}, "timeout_mins": 10}
        assert stoker.heat("PUT", path, body).status == 202

    assert _TEMPLATE is not None
    template = _TEMPLATE[1]
    path = stoker.create_stack("app", template, parameters={"version": "1"}, timeout_mins=10)
    stoker.await_stack(path, seconds=120)
    assert releases(stoker) == [["1"]] * 4

    roll_out("broken")
    reason = stoker.await_stack(path, "UPDATE_FAILED", 120)["stack_status_reason"]
    assert "resources.fleet.resources.0.health: Deployment to server failed" in reason
    assert reason.endswith("; brought back to what it was before: 0")
    assert releases(stoker) == [["1"], ["1"], ["1"], ["1", "broken", "1"]]

    roll_out("2")
    for _ in range(3):
        time.sleep(random.uniform(0.05, 0.8))
        stoker.kill9()
        stoker.restart()
    stoker.await_stack(path, "UPDATE_COMPLETE", 120)
    assert releases(stoker) == [["1", "2"], ["1", "2"], ["1", "2"], ["1", "broken", "1", "2"]]
