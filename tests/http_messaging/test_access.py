"""Whose queues are whose, and what a signed URL opens."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from http_messaging.conftest import Zaqar
from stoker.messaging import SignedUrls
from stoker.messaging.signed_urls import AGENTS_PERIOD, agents_until
from support.accounts import PASSWORD, create_account, create_project, log_in

READS = [
    "{queue}",
    "{queue}/messages?echo=true",
    "{queue}/messages/{message}",
    "{queue}/subscriptions",
    "{queue}/subscriptions/{subscription}",
]


def somebody(stoker, *roles: str) -> tuple[Zaqar, str]:
    """(as somebody with these roles in a project, that project)"""
    account = create_account(stoker, *roles, project=create_project(stoker))
    return Zaqar(stoker, {"X-Auth-Token": account.token}), account.project


@pytest.fixture(scope="module")
def things(stoker):
    zaqar = Zaqar(stoker)
    queue = zaqar.queue()
    zaqar.post(queue, "held")
    [message] = zaqar.post(queue, "secret")
    said = zaqar("POST", f"{queue}/subscriptions", {"subscriber": "http://127.0.0.1:9/a", "ttl": 9999})
    return {"queue": queue, "message": message, "subscription": said.body["subscription_id"]}


def everything(zaqar, things):
    answers = [zaqar("GET", path.format(**things)) for path in READS]
    return [(each.status, ageless(each.body)) for each in answers]


def ageless(said):
    """Without what time alone changes."""
    if isinstance(said, dict):
        return {name: ageless(part) for name, part in said.items() if name != "age"}
    return [ageless(part) for part in said] if isinstance(said, list) else said


def test_each_project_has_its_own_queues(stoker, zaqar, things):
    other, _ = somebody(stoker, "member")
    before = everything(zaqar, things)
    assert other("GET", "/queues").body["queues"] == []
    assert other.bodies(things["queue"]) == []
    other.refused("GET", "{queue}/messages/{message}".format(**things), status=404)
    other.refused("GET", "{queue}/subscriptions/{subscription}".format(**things), status=404)
    other.post(things["queue"], "theirs")
    assert other("DELETE", "{queue}/messages/{message}".format(**things)).status == 204
    assert other("DELETE", "{queue}/messages?ids={message}".format(**things)).status == 204
    assert other("DELETE", "{queue}/subscriptions/{subscription}".format(**things)).status == 204
    assert other.pop(things["queue"], 20) == ["theirs"]
    assert other("DELETE", things["queue"]).status == 204
    assert everything(zaqar, things) == before


def test_the_project_header_must_match_the_token(stoker, zaqar, queue):
    assert zaqar("GET", queue, headers={"X-Project-Id": stoker.project}).status == 200
    assert zaqar("GET", queue, headers={"X-Project-Id": ""}).status == 200
    assert "X-Project-Id" in zaqar.refused("GET", queue, status=403, headers={"X-Project-Id": uuid.uuid4().hex})


def test_a_token_without_a_project_has_no_queues(stoker):
    nobody = Zaqar(stoker, {"X-Auth-Token": log_in(stoker, create_account(stoker, "reader").name, PASSWORD, None)})
    assert "project" in nobody.refused("GET", "/queues")


def test_a_project_with_queues_is_not_deleted(stoker):
    member, project = somebody(stoker, "member")
    member("PUT", "/queues/one")
    answer = stoker.identity("DELETE", f"/projects/{project}")
    assert answer.status == 409
    assert "message queues" in answer.body["error"]["message"]
    member("DELETE", "/queues/one")
    assert stoker.identity("DELETE", f"/projects/{project}").status == 204


def shared(zaqar, queue, **said):
    answer = zaqar("POST", f"{queue}/share", said)
    assert answer.status == 200, answer.raw
    return answer.body


def holder(stoker, url, **changes) -> Zaqar:
    """As who holds a signed URL and nothing else."""
    said = {**url, **changes}
    headers = {
        "URL-Signature": said["signature"],
        "URL-Expires": said["expires"],
        "URL-Methods": ",".join(said["methods"]),
        "URL-Paths": ",".join(said["paths"]),
        "X-Project-Id": said["project"],
    }
    return Zaqar(stoker, headers)


def test_a_signed_url_permits_its_methods_and_paths(stoker, zaqar, queue):
    url = shared(zaqar, queue, paths=["messages"], methods=["POST", "GET"])
    assert url["paths"] == [f"/v2{queue}/messages"]
    assert (url["methods"], url["project"]) == (["GET", "POST"], stoker.project)
    assert len(url["signature"]) == len("stk_") + 64
    held = holder(stoker, url)
    [id] = held.post(queue, "by url")
    assert held.bodies(queue) == ["by url"]
    assert held("GET", f"{queue}/messages/{id}").body["body"] == "by url"
    other = zaqar.queue()
    for verb, path in (
        ("DELETE", f"{queue}/messages?pop=1"),
        ("GET", f"{queue}/messagesx"),
        ("GET", queue),
        ("GET", f"{queue}/subscriptions"),
        ("POST", f"{queue}/share"),
        ("GET", f"{other}/messages"),
        ("GET", "/queues"),
    ):
        held.refused(verb, path, status=404)


def test_the_signed_text_is_zaqars():
    """Zaqar joins with the two characters backslash and n; keys are the site's, one for each project."""
    url = SignedUrls(b"site").sign("p", ["/v2/b", "/v2/a"], ["POST", "GET"], datetime(2099, 1, 1, tzinfo=UTC))
    site = hmac.digest(b"site", b"stoker signed urls of queues", hashlib.sha256)
    text = rb"/v2/a,/v2/b\nGET,POST\np\n2099-01-01T00:00:00"
    signature = hmac.new(hmac.digest(site, b"p", hashlib.sha256), text, hashlib.sha256).hexdigest()
    assert url.signature == f"stk_{signature}", "found by its form in answers to readers"


def test_a_signed_url_has_defaults(stoker, zaqar, queue):
    url = shared(zaqar, queue)
    assert (url["paths"], url["methods"]) == ([f"/v2{queue}/messages"], ["GET"])
    ends = datetime.fromisoformat(url["expires"]).replace(tzinfo=UTC)
    assert timedelta(hours=23, minutes=59) < ends - datetime.now(UTC) <= timedelta(days=1)
    assert url["expires"] == ends.strftime("%Y-%m-%dT%H:%M:%S")
    zoned = shared(zaqar, queue, expires="2099-01-01T01:00:00.5+01:00")
    assert zoned["expires"] == "2099-01-01T00:00:00"
    assert holder(stoker, zoned)("GET", f"{queue}/messages").status == 200


def test_an_altered_signed_url_is_refused(stoker, zaqar, queue):
    url = shared(zaqar, queue, methods=["GET", "DELETE"])
    other = zaqar.queue()
    _, elsewhere = somebody(stoker, "member")
    for change in (
        {"methods": ["GET", "DELETE", "POST"]},
        {"methods": ["GET"]},
        {"paths": [f"/v2{other}/messages"]},
        {"paths": [*url["paths"], f"/v2{other}/messages"]},
        {"paths": ["/v2"]},
        {"paths": [""]},
        {"expires": "2099-01-01T00:00:00"},
        {"expires": "1"},
        {"expires": ""},
        {"expires": "9999-12-31T23:59:59-23:59"},
        {"project": elsewhere},
        {"project": ""},
        {"signature": ""},
        {"signature": "0" * 64},
        {"signature": "ä"},
    ):
        held = holder(stoker, url, **change)
        for path in (queue, other):
            held.refused("GET", f"{path}/messages", status=404)
            held.refused("DELETE", f"{path}/messages?pop=1", status=404)
    assert holder(stoker, url).bodies(queue) == []


def test_a_signed_url_expires(stoker, zaqar, queue):
    soon = (datetime.now(UTC) + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%S")
    held = holder(stoker, shared(zaqar, queue, expires=soon))
    stoker.until(lambda: held("GET", f"{queue}/messages").status == 404)
    assert datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S") >= soon


def test_an_agents_signed_url_expires_two_to_three_periods_from_now():
    """From two periods to three after now, and the same all through a period that differs from one to the next."""
    now = datetime(2030, 1, 1, tzinfo=UTC)
    ends = []
    for _ in range(50):
        id = str(uuid.uuid4())
        until = agents_until(id, now)
        assert 2 * AGENTS_PERIOD < until - now <= 3 * AGENTS_PERIOD
        turn = until - 2 * AGENTS_PERIOD
        assert agents_until(id, turn - timedelta(seconds=1)) == until
        assert agents_until(id, turn) == until + AGENTS_PERIOD
        ends.append(until)
    assert len(set(ends)) > 40


def test_a_signed_url_ends_with_its_project(stoker):
    member, project = somebody(stoker, "member")
    url = shared(member, "/queues/theirs", methods=["POST", "GET"])
    held = holder(stoker, url)
    assert held("GET", "/queues/theirs/messages").status == 200
    assert stoker.identity("DELETE", f"/projects/{project}").status == 204
    held.refused("POST", "/queues/theirs/messages", {"messages": [{"body": 1}]}, status=404)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "object"),
        (b"", "JSON"),
        ({"other": 1}, "other"),
        ({"paths": "messages"}, "paths"),
        ({"paths": ["share"]}, "paths"),
        ({"paths": [["messages"]]}, "paths"),
        ({"paths": ["../other/messages"]}, "paths"),
        ({"methods": ["get"]}, "methods"),
        ({"methods": "GET"}, "methods"),
        ({"methods": [{}]}, "methods"),
        ({"expires": 1}, "expires"),
        ({"expires": "4102444800"}, "expires"),
        ({"expires": "soon"}, "expires"),
        ({"expires": "2001-01-01T00:00:00"}, "expires"),
        ({"expires": "0001-01-01T00:00:00+23:59"}, "expires"),
    ],
)
def test_invalid_signing_requests_are_refused(zaqar, queue, body, words):
    assert words in zaqar.refused("POST", f"{queue}/share", body)


def test_the_versions_are_listed(stoker, zaqar):
    answer = stoker.request("GET", "/messaging/")
    assert answer.status == 300
    [version] = answer.body["versions"]
    assert (version["id"], version["status"]) == ("2", "CURRENT")
    assert version["links"] == [{"rel": "self", "href": f"{stoker.url}/messaging/v2/"}]
    zaqar.refused("GET", "/nothing", status=404)
    zaqar.refused("PUT", "/queues", status=405)
    catalog = stoker.identity("GET", "/auth/catalog").body["catalog"]
    [endpoints] = [each["endpoints"] for each in catalog if each["type"] == "messaging"]
    assert {each["url"] for each in endpoints} == {f"{stoker.url}/messaging"}
