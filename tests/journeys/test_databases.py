"""A schedule backs up all databases of a component on one server, with a real agent, in the order of requirements."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from support.templates import define, on, template

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)]

SCRIPT = """\
#!/bin/sh
echo "$deploy_action $database $copies" >> "$WORK/runs"
printf '%s' "$database.dump" > "$heat_outputs_path.file"
"""
COMPONENT = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "database"}, {"name": "copies", "type": "Number", "default": 1}],
    outputs=[{"name": "file"}],
    configs=[{"actions": ["CREATE", "BACKUP"], "tool": "script", "config": SCRIPT}],
)


def test_a_schedule_backs_up_every_database(stoker, agent, tmp_path):
    orders, users = (on("web1", "database", input_values={"database": name}) for name in ("orders", "users"))
    resources = {"database": COMPONENT, "orders": orders | {"depends_on": "users"}, "users": users}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(template(resources)))
    stoker.run("stack", "create", "shop", "-t", str(path), "--wait")
    agent.work.joinpath("runs").unlink()

    def at(**later: int) -> str:
        return (datetime.now(UTC) + timedelta(**later)).isoformat()

    words = ("shop", "database", "BACKUP", "-i", "copies=2", "--at", at(hours=1), "--name", "nightly")
    stoker.run("schedule", "create", *words)
    path = f"/software_schedules/{stoker.json('schedule', 'show', 'nightly')['id']}"
    # A request that takes longer than a second names a time that has passed.
    stoker.until(lambda: stoker.heat("PATCH", path, {"at": at(seconds=1)}).status == 200)
    stoker.until(lambda: agent.lines() == ["BACKUP users 2", "BACKUP orders 2"])
    assert stoker.heat("GET", path).body["software_schedule"]["run_count"] == 1
    [newest] = stoker.json("trigger", "list", "--limit", "1")
    stoker.until(lambda: stoker.json("trigger", "show", newest["id"])["status"] == "COMPLETE")
    assert stoker.run("trigger", "outputs", newest["id"], "file", "-o", "value").stdout == (
        "web1/users\tfile\tusers.dump\nweb1/orders\tfile\torders.dump\n"
    )
