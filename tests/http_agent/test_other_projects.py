"""An agent has no access to runs of other servers, or of projects that name its server as their deployment's."""

from __future__ import annotations

import pytest

from support.accounts import Account, create_account, create_project
from support.agent_protocol import deploy, shown, spoken_agent

ABSENT = "11111111-1111-1111-1111-111111111111"


@pytest.fixture(scope="module")
def elsewhere(stoker) -> Account:
    """A member of another project."""
    return create_account(stoker, "member", project=create_project(stoker))


def signalled(stoker, agent, project, deployment) -> int:
    path = f"/v1/{project}/software_deployments/{deployment['id']}/signal"
    said = {"deploy_status_code": 0}
    return stoker.request("POST", path, said, {"Authorization": f"Bearer {agent.key}"}).status


def run(stoker, deployment):
    return stoker.heat("GET", f"/software_deployments/{deployment['id']}/runs").body["runs"][0]


@pytest.mark.parametrize("owner", ["another server", "another project"])
def test_an_agent_cannot_end_the_run_of_another(stoker, elsewhere, agent, owner):
    other, server_id = (stoker, spoken_agent(stoker).id) if owner == "another server" else (elsewhere, agent.id)
    theirs, unknown = deploy(other, server_id), {"id": ABSENT, "config_id": ABSENT}
    before = shown(other, theirs)
    for project in (stoker.project, elsewhere.project):
        assert signalled(stoker, agent, project, theirs) == 404
    for path, body in (
        ("signal", {"deploy_status_code": 0}),
        ("progress", {"percent": 5}),
        ("logs?stream=stdout&offset=0", b"text"),
    ):
        answers = [agent.call("POST", f"/runs/{run['config_id']}/{path}", body) for run in (theirs, unknown)]
        assert [answer.status for answer in answers] == [404, 404]
        assert answers[0].raw.replace(theirs["config_id"].encode(), ABSENT.encode()) == answers[1].raw
    assert shown(other, theirs) == before
    assert agent.entries() == []
    own = deploy(stoker, agent.id)
    assert signalled(stoker, agent, stoker.project, own) == 200
    assert shown(stoker, own)["status"] == "COMPLETE"


def test_an_acknowledgment_delivers_no_run_of_another_project(stoker, elsewhere, agent):
    theirs, own = deploy(elsewhere, agent.id), deploy(stoker, agent.id)
    document = agent.document()
    assert [each["deployment_id"] for each in document.body["deployments"]] == [own["id"]]
    agent.document(etag=document.headers["ETag"])  # the receipt
    stoker.until(lambda: run(stoker, own)["state"] == "DELIVERED")
    assert run(elsewhere, theirs)["state"] == "QUEUED"
