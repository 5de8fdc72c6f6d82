"""What browsers and caches are told: users' objects do not run in the origin of the API, and nothing secret is kept."""

from __future__ import annotations

import time
import uuid
from urllib.parse import quote, unquote

import pytest

from stoker.objects import tempurl

SCRIPT = b"<script>fetch('/v1/')</script>"
KEY = "horse staple battery"


@pytest.fixture(scope="module")
def container(member) -> str:
    """A container of the project's, whose signed URLs have KEY."""
    path = f"/object-store/v1/AUTH_{member.project}/c-{uuid.uuid4().hex[:8]}"
    created = member.request("PUT", path, b"", **{"X-Container-Meta-Temp-URL-Key": KEY})
    assert created.status == 201, created.raw
    return path


def put(member, container, name: str, kind: str, **headers: str) -> str:
    path = f"{container}/{quote(name)}"
    stored = member.request("PUT", path, SCRIPT, **{"Content-Type": kind, **headers})
    assert stored.status == 201, stored.raw
    return path


def signed(path: str) -> str:
    expires = int(time.time()) + 600
    signature = tempurl.sign(KEY, "GET", unquote(path).removeprefix("/object-store"), expires)
    return f"{path}?temp_url_sig={signature}&temp_url_expires={expires}"


ACTIVE = [
    "text/html",
    "TEXT/HTML; charset=utf-8",
    "application/xhtml+xml",
    "image/svg+xml",
    "text/xml",
    "application/javascript",
    "application/pdf",
    "multipart/related",
]


@pytest.mark.parametrize("kind", ACTIVE)
def test_active_content_is_downloaded_and_not_displayed(stoker, member, container, kind):
    path = put(member, container, "a b.x", kind, **{"Content-Disposition": 'inline; filename="a"'})
    plain = put(member, container, "plain", kind)
    answers = [member.request("GET", path), member.request("HEAD", path), member.request("GET", plain)]
    answers += [stoker.request("GET", signed(each) + how) for each in (path, plain) for how in ("", "&inline")]
    for answer in answers:
        assert answer.status == 200, answer.raw
        assert answer.headers["Content-Disposition"].startswith("attachment"), answer.headers
        assert answer.headers["Content-Type"] == kind
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answers[0].headers["Content-Disposition"] == 'attachment; filename="a"'
    assert answers[0].raw == SCRIPT


def test_passive_content_may_be_displayed(stoker, member, container):
    path = put(member, container, "words", "text/plain", **{"Content-Disposition": "inline"})
    own = member.request("GET", path)
    assert own.headers["Content-Disposition"] == "inline"
    assert member.request("GET", put(member, container, "other", "text/plain")).headers["Content-Disposition"] is None
    shown = stoker.request("GET", signed(path) + "&inline")
    assert shown.headers["Content-Disposition"] == "inline"
    assert {own.headers["X-Content-Type-Options"], shown.headers["X-Content-Type-Options"]} == {"nosniff"}
    cached = put(member, container, "cached", "text/plain", **{"Cache-Control": "max-age=60"})
    assert member.request("GET", cached).headers["Cache-Control"] == "max-age=60"


def test_answers_with_secrets_are_not_cached(stoker, member):
    credential = f"/identity/v3/users/{member.user_id}/application_credentials"
    created = member.heat("POST", "/servers", {"name": f"s-{uuid.uuid4().hex[:8]}"})
    enrolled = {"token": created.body["enrollment"]["token"], "instance": "i"}
    answers = {
        "login": stoker.login(),
        "refused login": stoker.request("POST", "/identity/v3/auth/tokens", {}),
        "credential": member.request("POST", credential, {"application_credential": {"name": uuid.uuid4().hex}}),
        "enrollment": created,
        "agent's key": stoker.request("POST", "/agent/v1/enroll", enrolled),
        "stacks": member.heat("GET", "/stacks"),
        "no route": stoker.request("GET", "/nothing"),
    }
    kept = {name: answer.headers["Cache-Control"] for name, answer in answers.items()}
    assert set(kept.values()) == {"no-store"}, kept
    for answer in answers.values():
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"
