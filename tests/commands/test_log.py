"""The log of `stoker serve`: events with stable ids, whose facts are fields."""

from __future__ import annotations

import json
import logging

import pytest

from stoker import log
from support.agent_protocol import enroll
from support.server import Served, served
from support.templates import define, template

pytestmark = pytest.mark.slow


SERVE = ("--log-level", "debug")


def events(stoker: Served, name: str) -> list[dict[str, object]]:
    text = stoker.state_dir.joinpath("logs", "stoker.log").read_text()
    return [line for line in map(json.loads, text.splitlines()) if line["event"] == name]


@pytest.mark.parametrize(("level", "status"), [("info", "COMPLETE"), ("warning", "FAILED")])
def test_the_end_of_a_stack_has_the_stacks_id_and_the_requests(stoker, level, status):
    resource = define("OS::Heat::TestResource", fail=status == "FAILED")
    answer = stoker.heat("POST", "/stacks", {"stack_name": status, "template": template({"a": resource})})
    stoker.until(lambda: any(line["stack"] == status for line in events(stoker, "stack.ended")))
    [ended] = [line for line in events(stoker, "stack.ended") if line["stack"] == status]
    assert (
        ended.items()
        >= {
            "level": level,
            "stack_id": answer.body["stack"]["id"],
            "stack": status,
            "action": "CREATE",
            "status": status,
            "request_id": answer.headers["x-openstack-request-id"],
        }.items()
    )


def test_a_trigger_ends_with_its_counts(stoker):
    server, _ = enroll(stoker, "one")
    body = {"config_id": stoker.create_config(), "servers": [server["id"]], "action": "BACKUP"}
    trigger = stoker.create("software_triggers", **body)["id"]
    stoker.heat("POST", f"/software_triggers/{trigger}/cancel", {"force": True})
    stoker.until(lambda: events(stoker, "trigger.ended") != [])
    [ended] = events(stoker, "trigger.ended")
    assert (ended["trigger_id"], ended["status"], ended["total"], ended["cancelled"]) == (trigger, "CANCELLED", 1, 1)


def test_a_refused_key_is_logged_with_the_server_and_the_address(stoker):
    answer = stoker.request("GET", "/agent/v1/document", headers={"Authorization": "Bearer some-server.secret"})
    assert answer.status == 401
    [refused] = events(stoker, "agent_key.refused")
    assert (refused["server_id"], refused["address"]) == ("some-server", "127.0.0.1")
    assert refused["request_id"] == answer.headers["x-openstack-request-id"]


def test_requests_are_logged_on_demand_without_secrets_of_their_paths(stoker):
    answer = stoker.request("POST", "/signals/a-secret?also=secret")
    [line] = [line for line in events(stoker, "request.answered") if line["path"] == "/signals/…"]
    assert (line["method"], line["status"]) == ("POST", answer.status)
    assert line["request_id"] == answer.headers["x-openstack-request-id"]
    assert "secret" not in json.dumps(line)


def test_no_request_is_logged_by_default(tmp_path):
    with served(tmp_path) as stoker:
        stoker.heat("GET", "/stacks")
        assert events(stoker, "request.answered") == []


def test_the_file_is_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "_FILE_BYTES", 1000)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        log.configure("info", tmp_path)
        for number in range(100):
            logging.getLogger("test").info("line %d", number)
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["stoker.log", *(f"stoker.log.{number}" for number in range(1, 5))]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
