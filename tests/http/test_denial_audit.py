"""A refusal is kept in the audit log in a transaction of its own, which may fail too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stoker.model.errors import DeploymentRefused, Unavailable
from stoker.store import servers
from support.in_process import Inside
from support.templates import config, deployment, template

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def program(tmp_path, store):
    made = Inside(tmp_path, store)
    yield made
    made.close()


@pytest.fixture
def asks(program) -> dict[str, Callable[[], Any]]:
    """Who is refused, by the face that it asks."""
    root, headers = f"/v1/{program.project}", {"headers": program.headers}
    id = program.client.post(f"{root}/servers", json={"name": "web1"}, **headers).json()["server"]["id"]
    said = {"group": "script", "config": "x", "name": "c"}
    made = program.client.post(f"{root}/software_configs", json=said, **headers).json()["software_config"]["id"]
    program.store.write(lambda tx: servers.set_policy(tx, id, {"groups": ["puppet"]}))
    run = {"config_id": made, "server_id": id, "status": "IN_PROGRESS"}
    literal = deployment()
    literal["properties"]["server"] = id
    body = template({"config": config(), "d": literal})
    create = {"Action": "CreateStack", "StackName": "s", "TemplateBody": json.dumps(body), "ContentType": "JSON"}
    return {
        "heat": lambda: program.client.post(f"{root}/software_deployments", json=run, **headers),
        "cfn": lambda: program.client.get("/cfn/v1/", params=create, **headers),
    }


def kept(program) -> list[str]:
    found = program.client.get(f"/v1/{program.project}/audit", headers=program.headers).json()["audit"]
    return [each["outcome"] for each in found if each["action"] != "create enrollment"]


@pytest.mark.parametrize("face", ["heat", "cfn"])
def test_a_denial_is_written_to_the_audit_log(program, asks, face):
    assert asks[face]().status_code == 403
    assert kept(program) == ["REFUSED"]


@pytest.mark.parametrize("face", ["heat", "cfn"])
def test_a_denied_request_may_be_repeated_after_a_lost_database(program, asks, face, monkeypatch):
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
    answer = asks[face]()
    monkeypatch.undo()
    assert refused
    assert answer.status_code == 503
    assert kept(program) == []
