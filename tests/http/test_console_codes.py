"""One-time codes of the console: how long they are valid."""

from __future__ import annotations

from datetime import timedelta

from stoker.http.console.session import CODE_LIFE


def test_a_code_is_valid_for_a_minute(site):
    code, now = site.create("console_codes")["code"], site.store.clock.now()
    sessions = site.services.sessions
    assert sessions.read_code(code, now).project_id == site.project
    assert sessions.read_code(code, now + CODE_LIFE - timedelta(seconds=2)) is not None
    assert sessions.read_code(code, now + CODE_LIFE + timedelta(seconds=2)) is None
