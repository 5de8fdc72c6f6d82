"""The login of commands, which is kept for the next one, and the state of the site."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow


def test_status_shows_the_site_and_its_exit_code(site, stoker, monkeypatch):
    site.add_agent("web1")
    status = stoker("status", "-o", "json").data
    assert (status["url"], status["health"], status["servers"]["ONLINE"]) == (site.url, "ok", 1)
    assert status["version"]
    assert "triggers_in_progress" in stoker("status").out
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:1/identity/v3")
    assert stoker("status").code == 6


def test_a_login_is_kept_for_the_next_command(site, stoker, use_admin, nowhere, monkeypatch):
    def requests_of(*words: str) -> list[tuple[str, str]]:
        before = len(site.calls)
        assert stoker(*words).code == 0
        return site.calls[before:]

    use_admin()
    login, servers = ("POST", "/identity/v3/auth/tokens"), ("GET", f"/v1/{site.stoker.project}/servers")
    assert [call for call in requests_of("server", "list") if "auth/tokens" in call[1]] == [login]
    [kept] = nowhere.joinpath(".cache", "stoker", "logins").iterdir()
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    used = requests_of("server", "list") + requests_of("user", "list")
    assert [(verb, path.partition("?")[0]) for verb, path in used] == [servers, ("GET", "/identity/v3/users")]

    state = json.loads(kept.read_text())
    revoked = {**json.loads(state["state"]), "auth_token": "revoked"}
    kept.write_text(json.dumps({**state, "state": json.dumps(revoked)}))
    renewed = requests_of("server", "list")[-2:]
    assert [(verb, path.partition("?")[0]) for verb, path in renewed] == [login, servers]
    kept.write_text("{")
    assert stoker("server", "list").code == 0

    monkeypatch.setenv("OS_PASSWORD", "another")
    assert stoker("server", "list").code == 5
