"""Who only reads reads, and learns no key that would let them write."""

from __future__ import annotations

import uuid

import pytest

PASSWORD = "a password of a reader"


@pytest.fixture(scope="session")
def reader(stoker):
    """A token of somebody who only reads in the administrator's project."""
    headers = {"X-Auth-Token": stoker.token}
    name = f"reader-{uuid.uuid4().hex[:8]}"
    user = {"user": {"name": name, "password": PASSWORD, "default_project_id": stoker.project}}
    made = stoker.request("POST", "/identity/v3/users", user, headers)
    assert made.status == 201, made.raw
    roles = stoker.request("GET", "/identity/v3/roles", headers=headers).body["roles"]
    role = next(each["id"] for each in roles if each["name"] == "reader")
    id = made.body["user"]["id"]
    path = f"/identity/v3/projects/{stoker.project}/users/{id}/roles/{role}"
    assert stoker.request("PUT", path, None, headers).status == 204
    return stoker.login(OS_USERNAME=name, OS_PASSWORD=PASSWORD).headers["X-Subject-Token"]


def test_a_reader_only_reads(swift, reader):
    path = swift.container(X_Container_Meta_Temp_URL_Key="hidden", X_Container_Meta_Shown="yes")
    swift("PUT", f"{path}/o", b"data")
    assert swift("GET", f"{path}/o", token=reader).raw == b"data"
    assert swift("GET", path, token=reader).raw == b"o\n"
    for verb, below in (
        ("PUT", f"{path}/n"),
        ("POST", f"{path}/o"),
        ("DELETE", f"{path}/o"),
        ("PUT", f"{path}2"),
        ("POST", path),
        ("DELETE", path),
        ("POST", ""),
    ):
        assert swift(verb, below, b"", token=reader).status == 403, (verb, below)
    assert swift("GET", path).raw == b"o\n"


def test_temporary_url_keys_are_shown_only_to_writers(swift, reader):
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="hidden")
    path = swift.container(X_Container_Meta_Temp_URL_Key="hidden", X_Container_Meta_Shown="yes")
    for below in ("", path):
        kind = "Container" if below else "Account"
        for verb in ("HEAD", "GET"):
            assert swift(verb, below).headers[f"X-{kind}-Meta-Temp-URL-Key"] == "hidden"
            assert f"X-{kind}-Meta-Temp-URL-Key" not in swift(verb, below, token=reader).headers
    assert swift("HEAD", path, token=reader).headers["X-Container-Meta-Shown"] == "yes"
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="")
