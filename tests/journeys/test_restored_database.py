"""A database that was restored from a backup: what ran after the backup completes, and does not run again."""

from __future__ import annotations

import shutil

import pytest

from agent.conftest import shortened
from support.agent_protocol import shown
from support.agents import own_agent
from support.server import served


@pytest.mark.slow
@pytest.mark.parametrize("cancel", [False, True])
def test_a_run_that_ended_after_the_backup_of_a_restored_database_completes(tmp_path, cancel):
    """Its result was accepted and is lost, and the agent reports it again."""
    with served(tmp_path) as stoker, own_agent(tmp_path / "agent") as agent:
        agent.enroll(stoker, "web1")
        # The restored document may be the newest one that the agent has.
        agent.program = shortened({"agent._UPKEEP_SECONDS": 0.2, "results.LOST_SECONDS": 0.5})
        agent.start()
        script = "#!/bin/sh\necho ran >>$WORK/runs; until test -e $WORK/go; do sleep 0.05; done\n"
        body = {"config_id": stoker.create_config(script), "server_id": agent.spoken.id, "action": "CREATE"}
        created = stoker.heat("POST", "/software_deployments", {**body, "status": "IN_PROGRESS"}).body
        deployment = created["software_deployment"]

        stoker.until(agent.lines)
        stoker.stop()
        backup = tmp_path / "backup"
        shutil.copytree(stoker.state_dir, backup)
        stoker.restart()
        agent.work.joinpath("go").touch()
        stoker.until(lambda: shown(stoker, deployment)["status"] == "COMPLETE")
        folder = agent.root / "state" / "runs" / deployment["config_id"]
        stoker.until(folder.joinpath("acknowledged").exists)
        stoker.stop()
        shutil.rmtree(stoker.state_dir)
        shutil.copytree(backup, stoker.state_dir)
        stoker.restart()
        if cancel:
            stoker.heat("POST", f"/software_deployments/{deployment['id']}/cancel", {})
        stoker.until(lambda: shown(stoker, deployment)["status"] == "COMPLETE")
        assert agent.lines() == ["ran"]
