"""A refusal is kept in the audit log in a transaction of its own, which may fail too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker.model.errors import DeploymentRefused, Unavailable
from stoker.store import servers
from support.in_process import Inside

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def program(tmp_path, store):
    made = Inside(tmp_path, store)
    yield made
    made.close()


@pytest.fixture
def ask(program) -> Callable[[], Any]:
    """Send a request that is refused."""
    root, headers = f"/v1/{program.project}", {"headers": program.headers}
    id = program.client.post(f"{root}/servers", json={"name": "web1"}, **headers).json()["server"]["id"]
    said = {"group": "script", "config": "x", "name": "c"}
    made = program.client.post(f"{root}/software_configs", json=said, **headers).json()["software_config"]["id"]
    program.store.write(lambda tx: servers.change(tx, id, policy={"groups": ["puppet"]}))
    run = {"config_id": made, "server_id": id, "status": "IN_PROGRESS"}
    return lambda: program.client.post(f"{root}/software_deployments", json=run, **headers)


def kept(program) -> list[str]:
    found = program.client.get(f"/v1/{program.project}/audit", headers=program.headers).json()["audit"]
    return [each["outcome"] for each in found if each["action"] not in ("create enrollment", "log in")]


def test_a_denial_is_written_to_the_audit_log(program, ask):
    assert ask().status_code == 403
    assert kept(program) == ["REFUSED"]


def test_a_denied_request_may_be_repeated_after_a_lost_database(program, ask, monkeypatch):
    write, refused = program.store.write, []

    def failing(do: Any, **options: Any) -> Any:
        if refused:
            raise Unavailable("cannot write to the database: it went away")
        try:
            return write(do, **options)
        except DeploymentRefused as error:
            refused.append(error)
            raise

    monkeypatch.setattr(program.store, "write", failing)
    answer = ask()
    monkeypatch.undo()
    assert refused
    assert answer.status_code == 503
    assert kept(program) == []
