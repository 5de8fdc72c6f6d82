"""A refusal is kept in the audit log in a transaction of its own, which may fail too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker.model.errors import DeploymentRefused, Unavailable
from stoker.store import servers

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def ask(site) -> Callable[[], Any]:
    """Send a request that is refused."""
    id = site.call("POST", "servers", {"name": "web1"})["server"]["id"]
    config = site.call("POST", "software_configs", {"group": "script", "config": "x", "name": "c"})["software_config"]
    site.store.write(lambda tx: servers.change(tx, id, policy={"groups": ["puppet"]}))
    run = {"config_id": config["id"], "server_id": id, "status": "IN_PROGRESS"}
    return lambda: site.client.post(f"/v1/{site.project}/software_deployments", json=run, headers=site.headers)


def kept(site) -> list[str]:
    found = site.client.get(f"/v1/{site.project}/audit", headers=site.headers).json()["audit"]
    return [each["outcome"] for each in found if each["action"] not in ("create enrollment", "log in")]


def test_a_denied_request_may_be_repeated_after_a_lost_database(site, ask, monkeypatch):
    write, refused = site.store.write, []

    def failing(do: Any, **options: Any) -> Any:
        if refused:
            raise Unavailable("cannot write to the database: it went away")
        try:
            return write(do, **options)
        except DeploymentRefused as error:
            refused.append(error)
            raise

    monkeypatch.setattr(site.store, "write", failing)
    answer = ask()
    monkeypatch.undo()
    assert refused
    assert answer.status_code == 503
    assert kept(site) == []
    assert ask().status_code == 403
    assert kept(site) == ["REFUSED"]
