"""The hook of the group reboot: a real agent on a booted machine goes down with it, and its run ends once."""

from __future__ import annotations

import pytest

from support.server import served

pytestmark = pytest.mark.slow


def test_a_run_reboots_the_machine_and_goes_on_after_the_boot(machines, tmp_path):
    with machines.make("web", booted=True) as machine, served(tmp_path, host=machines.host_address) as stoker:
        machine.enroll(stoker)
        server = stoker.json("server", "show", "web")["id"]
        body = {"name": "again", "group": "reboot", "config": {}}
        config = stoker.heat("POST", "/software_configs", body).body["software_config"]["id"]
        deployment = {"config_id": config, "server_id": server, "action": "CREATE", "status": "IN_PROGRESS"}
        created = stoker.heat("POST", "/software_deployments", deployment)
        assert created.status == 200, created.raw
        path = f"/software_deployments/{created.body['software_deployment']['id']}"
        machine.wait_reboot()
        stoker.until(lambda: stoker.heat("GET", path).body["software_deployment"]["status"] != "IN_PROGRESS")
        result = stoker.heat("GET", path).body["software_deployment"]
        assert result["status"] == "COMPLETE", result
        assert machine.run(["ls", "/var/lib/stoker-agent/hooks/reboot"]).stdout == "", "nothing left for a later run"
        assert "still here" in stoker.run("run", "web", "--", "echo still here").stdout
