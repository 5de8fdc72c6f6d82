"""The hashes of passwords, and when they are made."""

from __future__ import annotations

import importlib.util

import pytest

from stoker.http.identity import ROUTES
from stoker.http.threads import LOGINS
from stoker.identity import passwords
from support.in_process import Inside


def test_a_hash_has_the_recommended_cost():
    spec = importlib.util.find_spec(passwords.__name__)  # a copy of the module, because tests hash with less work
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    stored = copy.hash_password("horse staple")
    assert stored.startswith("scrypt$16384$8$1$")
    assert copy.matches("horse staple", stored)


def test_a_hash_of_another_cost_matches(monkeypatch):
    stored = passwords.hash_password("horse staple")
    monkeypatch.setattr(passwords, "_N", passwords._N * 2)
    assert passwords.matches("horse staple", stored)
    assert not passwords.matches("horse stable", stored)


def test_requests_that_hash_have_a_limit_of_few_threads_and_a_bounded_queue():
    user = "/identity/v3/users"
    hashing = [("POST", "/identity/v3/auth/tokens"), ("POST", user), ("PATCH", f"{user}/{{user_id}}")]
    hashing += [("POST", f"{user}/{{user_id}}/{below}") for below in ("password", "application_credentials")]
    assert [(row.verb, row.path) for row in ROUTES if row.limit is LOGINS] == hashing
    assert (LOGINS.threads, LOGINS._most) == (2, 42)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_only_the_first_start_hashes_a_password(tmp_path, store, monkeypatch):
    program = Inside(tmp_path, store)
    monkeypatch.delattr(passwords, "hash_password")
    assert program.services.identity.first_start() is None
    program.close()
