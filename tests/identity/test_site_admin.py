"""Whom Keystone's own words make an administrator of the site."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.identity.keystone.authentication import KeystoneTokens

PROJECT = {"project": {"id": "p", "name": "p"}}
SYSTEM = {"system": {"all": True}}


@pytest.mark.parametrize(
    ("role", "scope", "expected"),
    [
        ("admin", SYSTEM, True),
        ("Admin", SYSTEM, True),
        ("admin", {**PROJECT, "is_admin_project": True}, True),
        ("admin", {**PROJECT, "is_admin_project": False}, False),
        ("admin", PROJECT, False),
        ("admin", {**PROJECT, "system": None}, False),
        ("member", SYSTEM, False),
        ("member", {**PROJECT, "is_admin_project": True}, False),
    ],
)
def test_an_administrator_of_the_system_or_of_keystones_admin_project(role, scope, expected):
    nobody: Any = None
    body = {
        "user": {"id": "u", "name": "u"},
        "roles": [{"name": role}],
        "expires_at": "2100-01-01T00:00:00.000000Z",
        **scope,
    }
    assert KeystoneTokens(nobody, nobody, "", 5).principal(body).site_admin is expected
