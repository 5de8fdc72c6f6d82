"""Nobody becomes more than their token lets them be: by credentials, as a project's administrator, by old requests."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

import pytest

from support.accounts import PASSWORD, Account, create_account, create_project, log_in
from support.templates import HANDLE, template

IDENTITY = "/identity/v3"


def credential(account: Account, **how: Any) -> str:
    """A token by a new application credential of the account's."""
    body = {"application_credential": {"name": uuid.uuid4().hex, **how}}
    made = account.request("POST", f"{IDENTITY}/users/{account.user_id}/application_credentials", body)
    assert made.status == 201, made.raw
    found = made.body["application_credential"]
    auth = {
        "methods": ["application_credential"],
        "application_credential": {"id": found["id"], "secret": found["secret"]},
    }
    answer = account.stoker.request("POST", f"{IDENTITY}/auth/tokens", {"auth": {"identity": auth}})
    assert answer.status == 201, answer.raw
    return answer.headers["X-Subject-Token"]


@pytest.fixture
def owner(stoker) -> Account:
    """Member and reader of a project of their own."""
    return create_account(stoker, "member", "reader", project=create_project(stoker))


def test_a_credential_with_some_roles_creates_none_with_all(stoker, owner):
    """Also one that may make others: they have no more roles than it has itself."""
    token = credential(owner, roles=[{"name": "reader"}], unrestricted=True)
    path = f"/users/{owner.user_id}/application_credentials"
    stronger = {"application_credential": {"name": "stronger", "roles": [{"name": "member"}]}}
    assert stoker.identity("POST", path, stronger, token=token).status == 400
    same = stoker.identity("POST", path, {"application_credential": {"name": "same"}}, token=token)
    assert [each["name"] for each in same.body["application_credential"]["roles"]] == ["reader"]


def test_a_restricted_credential_cannot_administer(stoker, owner):
    """Neither its project nor, of the site's own administrator, the site."""
    name = f"admin-{uuid.uuid4().hex[:8]}"
    admin = create_account(stoker, "admin", project=create_project(stoker))
    assert stoker.identity("PUT", f"/system/users/{admin.user_id}/roles/admin").status == 204
    assert admin.request("GET", f"{IDENTITY}/users").status == 200
    token = credential(admin)
    assert stoker.identity("GET", "/users", token=token).status == 403
    assert stoker.identity("POST", "/users", {"user": {"name": name, "password": PASSWORD}}, token=token).status == 403
    grant = f"/projects/{admin.project}/users/{owner.user_id}/roles/member"
    assert stoker.identity("PUT", grant, token=token).status == 403
    assert stoker.identity("GET", "/users", token=credential(admin, unrestricted=True)).status == 200


def test_a_project_administrator_assigns_roles_in_the_project(stoker, owner):
    admin = create_account(stoker, "admin", project=create_project(stoker))
    grant = f"{IDENTITY}/projects/{admin.project}/users/{owner.user_id}/roles/reader"
    assert admin.request("PUT", grant).status == 204
    token = log_in(stoker, owner.name, PASSWORD, admin.project)
    assert stoker.request("GET", f"/v1/{admin.project}/stacks", headers={"X-Auth-Token": token}).status == 200
    listed = admin.request("GET", f"{IDENTITY}/role_assignments?scope.project.id={admin.project}").body
    assert {(each["user"]["id"], each["role"]["id"]) for each in listed["role_assignments"]} == {
        (admin.user_id, "admin"),
        (owner.user_id, "reader"),
    }
    both = f"{IDENTITY}/role_assignments?scope.project.id={admin.project}&scope.system=all"
    assert admin.request("GET", both).body["role_assignments"] == [], "a project's scope is not the system's"
    for query in ("", f"?scope.project.id={owner.project}", "?scope.system=all"):
        assert admin.request("GET", f"{IDENTITY}/role_assignments{query}").status == 403
    assert admin.request("PATCH", f"{IDENTITY}/projects/{admin.project}", {"project": {"name": "x"}}).status == 403
    assert [each["id"] for each in admin.request("GET", f"{IDENTITY}/projects").body["projects"]] == [admin.project]
    assert admin.request("GET", f"/v1/{admin.project}/services").status == 403
    assert admin.request("DELETE", grant).status == 204
    assert stoker.request("GET", f"/v1/{admin.project}/stacks", headers={"X-Auth-Token": token}).status == 403


def test_a_system_role_makes_a_site_administrator(stoker, owner):
    """With a token for the system, and with one for a project that they administer; with no other, and not any more."""
    grant = f"/system/users/{owner.user_id}/roles/admin"
    assert stoker.identity("PUT", grant).status == 204
    assert owner.request("GET", f"{IDENTITY}/users").status == 403, "a member's token is for a member's work"
    user, scope = {"id": owner.user_id, "password": PASSWORD}, {"system": {"all": True}}
    answer = stoker.log_in(user, scope)
    assert answer.body["token"]["system"] == {"all": True}
    assert [each["name"] for each in answer.body["token"]["roles"]] == ["admin"]
    token = answer.headers["X-Subject-Token"]
    assert stoker.identity("GET", "/users", token=token).status == 200
    assert stoker.request("GET", f"/v1/{owner.project}/stacks", headers={"X-Auth-Token": token}).status == 403
    assert stoker.identity("DELETE", grant, token=token).status == 400, "somebody must stay"
    [row] = stoker.identity("GET", f"/role_assignments?scope.system=all&user.id={owner.user_id}", token=token).body[
        "role_assignments"
    ]
    assert row["scope"] == {"system": {"all": True}}
    assert stoker.identity("PUT", grant.replace("admin", "reader")).status == 403
    assert stoker.identity("DELETE", grant).status == 204
    assert stoker.identity("GET", "/users", token=token).status == 403
    assert stoker.log_in(user, scope).status == 401
    assert stoker.identity("DELETE", grant).status == 404


def test_a_reader_cannot_signal_through_cloudformations_api(stoker, owner):
    reader = create_account(stoker, "reader", project=owner.project)
    stack = owner.create_stack("signalled", template({"handle": HANDLE}))
    arn = quote(f"arn:openstack:heat::{owner.project}:stacks", safe="")
    path = f"/cfn/v1/signal/{arn}/{stack.removeprefix('/stacks/')}/resources/handle"
    assert reader.request("POST", path, {"id": "1", "data": "reader"}).status == 403
    metadata = f"{stack}/resources/handle/metadata"
    assert owner.heat("GET", metadata).body["metadata"] == {}
    assert owner.request("POST", path, {"id": "1", "data": "member"}).status == 200
    assert owner.heat("GET", metadata).body["metadata"]["1"]["data"] == "member"
