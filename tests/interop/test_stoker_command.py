"""Our own command where it waits: what it asks of a real service, and that it is told the end."""

from __future__ import annotations

import subprocess

import pytest

from support.agent_protocol import deploy, shown, spoken_agent
from support.server import STOKER

pytestmark = pytest.mark.slow


def test_deployment_cancel_sends_all_cancellations_before_it_waits(stoker):
    away, other = spoken_agent(stoker), spoken_agent(stoker)
    held, waiting = deploy(stoker, away.id), deploy(stoker, other.id)
    assert [each["id"] for each in away.entries()] == [held["config_id"]]  # it has it, and is heard of no more
    away.log(held["config_id"], 0, b"begun\n")

    command = [*STOKER, "deployment", "cancel", held["id"], waiting["id"], "--wait"]
    with subprocess.Popen(command, env=stoker.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        stoker.until(lambda: shown(stoker, waiting)["status"] == "FAILED")
        assert shown(stoker, held)["status"] == "IN_PROGRESS"
        assert process.poll() is None
        away.log(held["config_id"], 6, b"still here\n")
        assert away.call("POST", f"/runs/{held['config_id']}/signal", {"deploy_status_code": 143}).status == 200
        said = process.communicate(timeout=60)

    cancelled = "".join(f"deployment {deployment['id']} cancelled\n" for deployment in (held, waiting))
    assert (process.returncode, said) == (0, (cancelled.encode(), b""))
    assert shown(stoker, held)["status"] == "FAILED"
