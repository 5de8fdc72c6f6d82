"""What the API says of checks whose server is offline."""

from __future__ import annotations

import re

from bench.swarm import enroll_servers

from support.clock import age


def test_the_reason_of_a_check_says_that_its_server_is_offline(site):
    def call(verb, path, body=None):
        """Call Heat's API, or the agent API with the key of the server."""
        if not path.startswith("/agent"):
            return site.call(verb, path, body)
        answer = site.client.request(verb, path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    headers = {"X-Stoker-Agent": "1; hooks=script; modes=check"}
    server = enroll_servers(call, ["web1"])["web1"]
    headers["Authorization"] = f"Bearer {server['key']}"
    config = {"name": "app", "group": "script", "config": "true", "options": {"check": "true"}}
    body = {"config_id": call("POST", "/software_configs", config)["software_config"]["id"], "server_id": server["id"]}
    deployment = call("POST", "/software_deployments", {**body, "signal_transport": "STOKER_SIGNAL"})
    id, config_id = (deployment["software_deployment"][name] for name in ("id", "config_id"))
    call("GET", "/agent/v1/document")
    call("POST", f"/agent/v1/runs/{config_id}/signal", {"deploy_status_code": 0})
    call("POST", "/checks", {"servers": ["web1"]})
    (request,) = call("GET", "/agent/v1/document")["checks"]
    answer = {"config_id": config_id, "state": "IN_SYNC", "changes": [], "requested": request["requested"]}
    call("POST", f"/agent/v1/checks/{id}", answer)
    assert [(check["state"], check["reason"]) for check in call("GET", "/checks")["checks"]] == [("IN_SYNC", "")]

    age(site.store, "servers", 300)
    (check,) = call("GET", "/checks")["checks"]
    reason = r"It was IN_SYNC 0:\d\d:\d\d ago, when server web1 was last seen, which is OFFLINE"
    assert re.fullmatch(reason, check["reason"]), check
    (check,) = call("POST", "/checks", {"servers": ["web1"]})["checks"]
    assert check["reason"] == "The agent has not answered: server web1 is OFFLINE"
