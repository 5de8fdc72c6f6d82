"""Attacks by logins: guessing, and keeping the service busy with password hashes."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import waiting
from support.accounts import PASSWORD, create_account
from support.availability import assert_harmless
from support.server import Answer, Served, served


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Of its own: an address that failed often has to wait. 127.0.0.0/16 is a proxy. Not forked: real hashes."""
    with served(tmp_path_factory.mktemp("logins"), "--proxy-addresses", "127.0.0.0/16", is_forked=False) as running:
        yield running


def log_in(stoker: Served, name: str, password: str, address: str):
    user = {"name": name, "domain": {"id": "default"}, "password": password}
    return stoker.log_in(user, **{"X-Forwarded-For": address})


def test_many_logins_at_a_time_are_harmless(guarded):
    answers = []

    def attack():
        with ThreadPoolExecutor(60) as pool:
            tries = [pool.submit(log_in, guarded, uuid.uuid4().hex, "wrong", f"10.0.{n}.1") for n in range(60)]
            answers.extend(each.result() for each in tries)

    assert_harmless(guarded, attack)
    assert {answer.status for answer in answers} <= {401, 429}
    for refused in (answer for answer in answers if answer.status == 429):
        assert int(refused.headers["Retry-After"]) > 0
        assert refused.body["error"]["code"] == 429


def test_guessing_delays_only_the_guessing_address(guarded):
    account = create_account(guarded, "reader")

    def is_delayed() -> bool:  # a pause of the machine may be as long as the first delay
        while log_in(guarded, account.name, "guess", "10.1.0.1").status != 429:
            pass
        answers.append(log_in(guarded, account.name, PASSWORD, "10.1.0.1"))
        return answers[-1].status == 429

    answers: list[Answer] = []
    waiting.until(is_delayed)
    right = answers[-1]
    assert "try again in" in right.body["error"]["message"]
    assert int(right.headers["Retry-After"]) > 0
    assert log_in(guarded, account.name, PASSWORD, "10.1.0.2").status == 201
    assert guarded.output.count(account.user_id) == len(answers), "one line for each lock-out"


def test_a_client_cannot_choose_its_address(tmp_path):
    """Without a declared proxy the header means nothing; with one, only what the proxy added."""
    with served(tmp_path) as stoker:
        statuses = {log_in(stoker, "admin", "wrong", f"10.2.0.{n}").status for n in range(8)}
        assert statuses == {401, 429}


def test_forwarded_addresses_before_the_trusted_proxy_are_ignored(guarded):
    statuses = {log_in(guarded, "nobody", "wrong", f"10.3.0.{n}, 10.4.0.1").status for n in range(8)}
    assert statuses == {401, 429}


def test_short_passwords_are_refused(guarded):
    answer = guarded.identity("POST", "/users", {"user": {"name": "weak", "password": "x" * 11}})
    assert (answer.status, "12" in answer.body["error"]["message"]) == (400, True)
    made = guarded.identity("POST", "/users", {"user": {"name": "good", "password": "x" * 12}})
    assert made.status == 201
    user = f"/users/{made.body['user']['id']}"
    assert guarded.identity("PATCH", user, {"user": {"password": "short"}}).status == 400
    token = log_in(guarded, "good", "x" * 12, "10.5.0.1").headers["X-Subject-Token"]
    change = {"user": {"password": "short", "original_password": "x" * 12}}
    assert guarded.identity("POST", f"{user}/password", change, token=token).status == 400
