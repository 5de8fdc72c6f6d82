"""Any number of processes on one PostgreSQL: what one commits, the others' agents hear."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support import databases
from support.processes import running
from support.server import SHARED_SECRET, served
from support.templates import config, deployment, template


@pytest.fixture
def both(tmp_path, postgresql_server):
    with databases.postgresql_url(postgresql_server) as url:
        for name in "ab":
            tmp_path.joinpath(name).mkdir()
        with (
            served(tmp_path / "a", *SHARED_SECRET, database=url) as first,
            served(tmp_path / "b", *SHARED_SECRET, database=url, login_of=first) as second,
        ):
            yield first, second


def test_an_agent_of_one_process_runs_a_deployment_of_the_other(both, tmp_path):
    first, second = both
    token = second.json("server", "enroll", "web")["enrollment"]["token"]
    agent = [sys.executable, "-m", "stoker_agent"]
    root = str(tmp_path / "agent")
    enroll = [*agent, "enroll", "--url", first.url, "--root", root]
    subprocess.run(enroll, input=token.encode(), check=True, capture_output=True)
    with running([*agent, "run", "--root", root], stderr=subprocess.DEVNULL):
        first.until(lambda: second.json("server", "show", "web")["status"] == "ONLINE")
        resources = {
            "web": {"type": "OS::Heat::DeployedServer", "properties": {"name": "web"}},
            "config": config("#!/bin/sh\necho $who > $heat_outputs_path.said", outputs=("said",)),
            "one": deployment(server="web", input_values={"who": "one"}),
            "two": deployment(server="web", input_values={"who": {"get_attr": ["one", "said"]}}),
        }
        outputs = {"said": {"value": {"get_attr": ["two", "said"]}}}
        path = tmp_path / "t.json"
        path.write_text(json.dumps(template(resources, outputs=outputs)))
        second.run("stack", "create", "s", "-t", str(path), "--wait")
        shown = first.json("stack", "outputs", "s")

    assert [each["output_value"] for each in shown] == ["one\n"]


def test_a_token_revoked_in_one_process_ends_in_the_other(both):
    first, second = both
    token = first.login().headers["X-Subject-Token"]
    headers = {"X-Auth-Token": token}
    path = f"/v1/{first.project}/stacks"
    assert second.request("GET", path, headers=headers).status == 200

    assert (
        first.request("DELETE", "/identity/v3/auth/tokens", headers={**headers, "X-Subject-Token": token}).status == 204
    )
    first.until(lambda: second.request("GET", path, headers=headers).status == 401)
