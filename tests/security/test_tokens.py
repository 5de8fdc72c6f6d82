"""What a token opens ends with it: streams, tokens made from it, and nothing it was not asked for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.accounts import PASSWORD, Account, create_account, create_project, log_in
from support.events import event_stream
from support.server import Answer, Served


def revoke(account: Account) -> Answer:
    return account.stoker.identity("DELETE", "/auth/tokens", token=account.token, subject=account.token)


def disable(account: Account) -> Answer:
    return account.stoker.identity("PATCH", f"/users/{account.user_id}", {"user": {"enabled": False}})


def change_password(account: Account) -> Answer:
    return account.stoker.identity("PATCH", f"/users/{account.user_id}", {"user": {"password": "another staple"}})


def take_role(account: Account) -> Answer:
    return account.stoker.identity("DELETE", f"/projects/{account.project}/users/{account.user_id}/roles/reader")


def rescope(stoker: Served, token: str, scope: object = None) -> Answer:
    auth = {"identity": {"methods": ["token"], "token": {"id": token}}, **({"scope": scope} if scope else {})}
    return stoker.identity("POST", "/auth/tokens", {"auth": auth})


def is_valid(stoker: Served, token: str) -> bool:
    answer = stoker.identity("GET", "/auth/tokens", token=token, subject=token)
    assert answer.status in (200, 401), answer.raw
    return answer.status == 200


@pytest.fixture
def deployment(stoker) -> Iterator[str]:
    """The id of one that nobody runs: its stream does not end by itself."""
    config = stoker.create("software_configs", name="stays")["id"]
    run = {"config_id": config, "server_id": str(uuid.uuid4()), "status": "IN_PROGRESS", "action": "CREATE"}
    created = stoker.create("software_deployments", **run)["id"]
    yield created
    stoker.heat("DELETE", f"/software_deployments/{created}")
    stoker.heat("DELETE", f"/software_configs/{config}")


@pytest.mark.parametrize("end", [revoke, disable, change_password, take_role])
def test_streams_and_requests_of_a_token_end_with_it(stoker, deployment, end: Callable[[Account], Answer]):
    """At once, though nothing happens in the stream; what happens afterwards is not sent."""
    account = create_account(stoker, "reader")
    assert account.heat("GET", "/stacks").status == 200
    with event_stream(stoker, f"/events?subject=deployment:{deployment}", token=account.token) as events:
        assert next(events).name == "status"
        answer = end(account)
        assert answer.status in (200, 204), answer.raw
        # Without the check this waits for events until the client's patience of a minute is over.
        change = {"status": "COMPLETE", "status_reason": "not for everybody"}
        assert stoker.heat("PUT", f"/software_deployments/{deployment}", change).status == 200
        assert [each.data for each in events] == []
    assert account.heat("GET", "/stacks").status == (403 if end is take_role else 401)


def test_a_token_ends_with_its_project(stoker):
    account = create_account(stoker, "member", project=create_project(stoker))
    assert account.heat("GET", "/stacks").status == 200
    path, change = f"/projects/{account.project}", {"project": {"enabled": False}}
    assert stoker.identity("PATCH", path, change).status == 200
    assert account.heat("GET", "/stacks").status == 401


def test_an_event_stream_outlives_the_tokens_of_others(stoker, deployment):
    account, other = create_account(stoker, "reader"), create_account(stoker, "reader")
    with event_stream(stoker, f"/events?subject=deployment:{deployment}", token=account.token) as events:
        assert next(events).name == "status"
        assert revoke(other).status == 204
        assert stoker.heat("PUT", f"/software_deployments/{deployment}", {"status": "COMPLETE"}).status == 200
        assert [each.name for each in events][-1] == "end"


def test_a_token_derived_from_a_token_expires_with_it(stoker):
    account = create_account(stoker, "member")
    sibling = log_in(stoker, account.name, PASSWORD, account.project)
    answer = rescope(stoker, account.token)
    child = answer.headers["X-Subject-Token"]
    grandchild = rescope(stoker, child).headers["X-Subject-Token"]
    parent = stoker.identity("GET", "/auth/tokens", token=child, subject=account.token).body["token"]
    assert answer.body["token"]["expires_at"] <= parent["expires_at"]
    assert all(is_valid(stoker, each) for each in (account.token, child, grandchild, sibling))
    assert revoke(account).status == 204
    assert not any(is_valid(stoker, each) for each in (account.token, child, grandchild))
    assert is_valid(stoker, sibling)
    assert rescope(stoker, child).status == 401


def test_revoking_a_derived_token_keeps_its_parent(stoker):
    account = create_account(stoker, "member")
    child = rescope(stoker, account.token).headers["X-Subject-Token"]
    assert stoker.identity("DELETE", "/auth/tokens", token=child, subject=child).status == 204
    assert is_valid(stoker, account.token)
    assert not is_valid(stoker, child)


def test_a_token_derived_during_the_revocation_of_its_parent_is_revoked(stoker):
    account = create_account(stoker, "member")
    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(rescope, stoker, account.token) for _ in range(8)]
        assert revoke(account).status == 204
        made += [threads.submit(rescope, stoker, account.token) for _ in range(4)]
    tokens = [each.result().headers.get("X-Subject-Token") for each in made]
    assert not any(is_valid(stoker, each) for each in tokens if each)
    assert tokens[-1] is None


def test_an_unscoped_token_has_no_project(stoker):
    """Also of a user with a default project, which a login without any scope is for."""
    name, project = f"user-{uuid.uuid4().hex[:8]}", stoker.project
    user = {"name": name, "password": PASSWORD, "default_project_id": project}
    user_id = stoker.identity("POST", "/users", {"user": user}).body["user"]["id"]
    assert stoker.identity("PUT", f"/projects/{project}/users/{user_id}/roles/member").status == 204
    known = {"id": user_id, "password": PASSWORD}
    default = stoker.log_in(known)
    assert default.body["token"]["project"]["id"] == project
    for answer in (
        stoker.log_in(known, "unscoped"),
        rescope(stoker, default.headers["X-Subject-Token"], "unscoped"),
    ):
        assert answer.status == 201, answer.raw
        assert not {"project", "roles", "catalog"} & answer.body["token"].keys()
        token = answer.headers["X-Subject-Token"]
        assert stoker.request("GET", f"/v1/{project}/stacks", headers={"X-Auth-Token": token}).status == 403
        scoped = rescope(stoker, token, {"project": {"id": project}})
        assert scoped.body["token"]["project"]["id"] == project
