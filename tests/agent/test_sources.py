"""Each source by itself, against a server that does what a test says: what is asked, what is new, what is an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from xml.sax.saxutils import escape

import pytest

from stoker.identity import ec2
from stoker.servers.keys import sign
from stoker_agent.config import Config
from stoker_agent.signatures import Verifier
from stoker_agent.transports import Making
from stoker_agent.transports.base import document
from stoker_agent.transports.cfn import Cfn
from stoker_agent.transports.heat import Heat
from stoker_agent.transports.stoker import Stoker
from stoker_agent.transports.url import Request
from stoker_agent.transports.zaqar import Zaqar
from stoker_agent.web import Busy, Unreachable
from support.certificates import Authority
from support.http_stub import Answering, Asked, Said, answering

pytestmark = pytest.mark.slow

ENTRY = {"id": "c1", "group": "script"}
DOCUMENT = {"deployments": [ENTRY], "os-collect-config": {"collectors": ["heat"]}}
OTHER = {"deployments": [{"id": "c2"}]}


class World:
    """What is there to be fetched, and what goes wrong."""

    def __init__(self) -> None:
        self.document: Any = DOCUMENT
        self.fails: list[Said] = []
        self.tokens: list[str] = []
        self.refused: set[str] = set()
        self.life = 3600.0
        self.messages: list[Any] = []
        #: Messages of two of these are not the same, whatever they say.
        self.era = 0
        #: What it does not know, and after which of its messages it is away.
        self.knows_markers = True
        self.failing_after: str | None = None
        self.conditional = True
        self.etags = True
        self.modified = datetime(2026, 1, 1, tzinfo=UTC)

    def decide(self, asked: Asked) -> Said:
        if self.fails:
            return self.fails.pop(0)
        if asked.path.endswith("/auth/tokens"):
            return self._log_in(asked)
        if asked.path.startswith(("/heat", "/zaqar")):
            token = asked.headers.get("x-auth-token", "")
            if token not in self.tokens or token in self.refused:
                return Said(401, {"error": "no"})
        if asked.path == "/heat/p/stacks/s/1/resources/server/metadata":
            return Said(body={"metadata": self.document})
        if asked.path == "/zaqar/v2/queues/q/messages":
            return self._read(asked)
        if asked.path == "/cfn/v1/":
            return self._described(asked)
        if asked.path == "/object":
            return self._object(asked)
        return Said(404)

    def _log_in(self, asked: Asked) -> Said:
        said = asked.json["auth"]
        if said["identity"]["password"]["user"] != {"id": "u", "password": "pw"}:
            return Said(401, {"error": "no"})
        assert said["scope"] == {"project": {"id": "p"}}
        self.tokens.append(f"token-{len(self.tokens)}")
        issued = datetime(2020, 1, 1, tzinfo=UTC)  # its clock is years behind
        endpoint = "http://{}{}".format(asked.headers["host"], "/{}")
        catalog = [
            {
                "type": kind,
                "endpoints": [
                    {"interface": "internal", "region": "here", "url": "http://nowhere.invalid"},
                    {"interface": "public", "region": "there", "url": "http://nowhere.invalid"},
                    {"interface": "public", "region_id": "here", "url": endpoint.format(path)},
                ],
            }
            for kind, path in (("orchestration", "heat/p"), ("messaging", "zaqar"))
        ]
        token = {
            "issued_at": issued.isoformat().replace("+00:00", ".000000Z"),
            "expires_at": (issued + timedelta(seconds=self.life)).isoformat().replace("+00:00", "Z"),
            "catalog": catalog,
        }
        return Said(201, {"token": token}, {"X-Subject-Token": self.tokens[-1]})

    def _read(self, asked: Asked) -> Said:
        """As a Zaqar on Redis has it: a marker that is gone counts as none."""
        query = dict(asked.query)
        marker, limit = query.pop("marker", ""), int(query["limit"])
        assert (asked.verb, query) == ("GET", {"echo": "true", "limit": "20"})
        assert len(asked.headers["client-id"]) == 36
        if marker and marker == self.failing_after:
            return Said(503)
        ids = [f"{self.era}-{number}" for number in range(len(self.messages))]
        marker = marker if self.knows_markers else ""
        start = ids.index(marker) + 1 if marker in ids else 0
        page = list(zip(ids, self.messages, strict=True))[start : start + limit]
        links = [{"rel": "next", "href": f"/v2/queues/q/messages?marker={page[-1][0]}&echo=true"}] if page else []
        return Said(body={"messages": [{"id": id, "body": each} for id, each in page], "links": links})

    def _described(self, asked: Asked) -> Said:
        params = dict(asked.query)
        signature = params.pop("Signature")
        assert signature == ec2.sign_v2("s+/ß", asked.verb, asked.headers["host"], asked.path, params)
        assert params["StackName"] == "stack & co"
        return Said(body=described(self.document, params["LogicalResourceId"]).encode())

    def _object(self, asked: Asked) -> Said:
        raw = Said(body=self.document).raw
        modified = format_datetime(self.modified, usegmt=True)
        headers = {"Last-Modified": modified}
        if self.etags:
            headers["ETag"] = f'"{hashlib.sha256(raw).hexdigest()[:8]}"'
        if self.conditional and (
            (self.etags and asked.headers.get("if-none-match") == headers["ETag"])
            or (not self.etags and asked.headers.get("if-modified-since") == modified)
        ):
            return Said(304, headers=headers)
        return Said(body=raw, headers=headers)


def described(document: Any, resource: str, namespace: str = "") -> str:
    detail = f"<LogicalResourceId>{resource}</LogicalResourceId><Metadata>{escape(json.dumps(document))}</Metadata>"
    for name in ("StackResourceDetail", "DescribeStackResourceResult"):
        detail = f"<{name}>{detail}</{name}>"
    return f"<DescribeStackResourceResponse{namespace}>{detail}</DescribeStackResourceResponse>"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def there(world: World) -> Iterator[Answering]:
    with answering(world.decide) as running:
        yield running


def login(there: Answering, **more: Any) -> dict[str, Any]:
    known = {"auth_url": f"{there.url}/v3", "user_id": "u", "password": "pw", "project_id": "p", "region_name": "here"}
    return {**known, **more}


def cfn_section(there: Answering, **more: Any) -> dict[str, Any]:
    return {
        "metadata_url": f"{there.url}/cfn/v1/",
        "access_key_id": "access",
        "secret_access_key": "s+/ß",
        "stack_name": "stack & co",
        "path": "server.Metadata",
        **more,
    }


Make = Callable[..., Any]


@pytest.fixture
def make(there) -> Iterator[Make]:
    """By its name, with more in its section."""
    made = []

    def one(name: str, **more: Any) -> Any:
        if name == "cfn":
            made.append(Cfn(cfn_section(there, **more), Making()))
        elif name == "heat":
            made.append(Heat(login(there, stack_id="s/1", resource_name="server", **more), Making()))
        elif name == "request":
            made.append(Request({"metadata_url": f"{there.url}/object", **more}, Making()))
        else:
            made.append(Zaqar(login(there, queue_id="q", **more), Making()))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture(params=["cfn", "heat", "request", "zaqar"])
def source(request, make, world) -> Any:
    world.messages = [DOCUMENT]
    return make(request.param)


def put(world: World, document: Any) -> None:
    world.document, world.messages, world.era = document, [document], world.era + 1
    world.modified += timedelta(days=1)


def test_a_document_is_returned_once_until_it_changes_or_after_a_reset(source, world):
    found = source.fetch(0)
    assert (found.entries, found.collect) == ([ENTRY], {"collectors": ["heat"]})
    assert source.fetch(0) is source.fetch(0) is None
    source.reset()
    assert source.fetch(0) == found
    put(world, OTHER)
    assert (source.fetch(0).entries, source.fetch(0)) == ([{"id": "c2"}], None)


@pytest.mark.parametrize("document", [5, "text", [DOCUMENT], None])
def test_an_invalid_document_is_an_error(source, world, document):
    put(world, document)
    with pytest.raises(Unreachable, match="document"):
        source.fetch(0)


@pytest.mark.parametrize("document", [{}, {"deployments": 5, "os-collect-config": [1]}, {"deployments": [None, 5]}])
def test_missing_and_invalid_parts_of_a_document_are_omitted(source, world, document):
    put(world, document)
    found = source.fetch(0)
    assert (found.entries, found.collect) == ([], {})


LINES = b"so it is\nin two lines"
FAILURES = [(Said(status, LINES), Unreachable, f"{status} so it is in two lines") for status in (400, 403, 404, 418)]
FAILURES += [(Said(status), Busy, f"{status}") for status in (500, 503, 429, 408)]
FAILURES += [(Said(200, b"\xff<html>"), Unreachable, ".")]


@pytest.mark.parametrize(("answer", "error", "text"), FAILURES, ids=lambda value: getattr(value, "status", None))
def test_a_failure_is_one_line_without_secrets_and_the_next_poll_succeeds(source, world, answer, error, text):
    source.fetch(0)
    world.fails = [answer] * 3
    with pytest.raises(error, match=text) as raised:
        source.fetch(0)
    assert "pw" not in str(raised.value)
    put(world, OTHER)
    world.fails = [Said(lost=True)]  # a connection that was closed in between is opened again silently
    assert source.fetch(0).entries == [{"id": "c2"}]


def test_an_unreachable_server_is_an_error(source, there):
    there.close()
    with pytest.raises(Unreachable, match="Refused"):
        source.fetch(0)


def test_an_agent_waits_as_long_as_the_server_asks(tmp_path):
    """Another machine polls with the same key: without a pause each would end the other's poll at once."""
    answers = [
        Said(200, {"server_id": "s", "revision": 1, "deployments": []}, {"ETag": '"1"'}),
        Said(304, headers={"Retry-After": "10"}),
        Said(304),
        Said(403, {"error": {"title": "ApprovalPending"}}),
        Said(200, {"status": "PENDING"}, {"Retry-After": "5"}),
    ]
    with answering(lambda _: answers.pop(0)) as there:
        source = Stoker(Making(Config(there.url, "s", "key"), tmp_path))
        pauses = []
        for _ in range(4):
            source.fetch(0)
            pauses.append(source.pause)
        source.close()
    assert pauses == [0.0, 10.0, 0.0, 5.0]


@pytest.mark.parametrize(
    "content",
    [b"", b"no json", b"[]", b"{}", b'{"deployments": 5}', b'{"deployments": [], "poll_wait": "x"}', b"\xff"],
)
def test_an_invalid_document_of_stoker_is_an_error(tmp_path, content):
    with answering(lambda _: Said(200, content)) as there:
        source = Stoker(Making(Config(there.url, "s", "key"), tmp_path))
        with pytest.raises(Unreachable, match="cannot be read"):
            source.fetch(0)
        source.close()


@pytest.mark.parametrize("limit", [None, 0, -1, "3", True, 2.5, [3]])
def test_an_invalid_limit_of_parallel_runs_counts_as_one(limit):
    assert document({"concurrency": limit}).concurrency == 1


# Keystone


@pytest.mark.parametrize("name", ["heat", "zaqar"])
def test_polls_share_one_login_until_its_token_is_refused_or_expires(world, there, make, name):
    world.messages = [DOCUMENT]
    source = make(name)
    for _ in range(3):
        source.fetch(0)
    assert len(world.tokens) == 1
    world.refused.add(world.tokens[-1])
    put(world, OTHER)
    world.life = 0.0
    assert source.fetch(0).entries == [{"id": "c2"}]
    assert len(world.tokens) == 2
    source.fetch(0)
    assert [each.headers["x-auth-token"] for each in there.asked[-1:]] == ["token-2"]


def test_a_refused_login_is_sent_once(world, there, make):
    source = make("heat", password="wrong")
    with pytest.raises(Unreachable, match="login is refused: 401") as error:
        source.fetch(0)
    assert len(there.asked) == 1
    assert "wrong" not in str(error.value)


@pytest.mark.parametrize("suffix", ["", "/", "/v2.0", "/v3/"])
def test_a_url_of_keystone_with_another_version_or_none(world, there, make, suffix):
    source = make("heat", auth_url=there.url + suffix)
    assert source.fetch(0).entries == [ENTRY]
    assert there.asked[0].path == "/v3/auth/tokens"


def test_an_unknown_region_falls_back_to_any_endpoint(world, there, make):
    source = make("heat", region_name="elsewhere")
    with pytest.raises(Unreachable, match=r"nowhere|resolution|gaierror"):
        source.fetch(0)  # it went for the first public one


@pytest.mark.parametrize("body", [b"", b"{}", b'{"token": 5}', b'{"token": {"catalog": []}}'])
def test_a_login_url_without_keystone_is_an_error(world, there, make, body):
    source = make("heat")
    world.fails = [Said(201, body, {"X-Subject-Token": "t"})]
    with pytest.raises(Unreachable):
        source.fetch(0)


# CloudFormation


def test_the_path_may_list_several_metadata_keys(world, there, make):
    world.document = {"a": {"deployments": [ENTRY]}, "b": {"c": OTHER}}
    source = make("cfn", path=["one.Metadata.a", "two.Metadata.b.c", "three.Metadata.none"])
    assert source.fetch(0).entries == [ENTRY, {"id": "c2"}]
    assert [each.query["LogicalResourceId"] for each in there.asked] == ["one", "two", "three"]


def test_xml_in_a_namespace(world, there, make):
    source = make("cfn")
    world.fails = [Said(200, described(DOCUMENT, "server", ' xmlns="http://heat/"').encode())]
    assert source.fetch(0).entries == [ENTRY]


@pytest.mark.parametrize(
    "body",
    [
        b"<a>",
        b"<StackResourceDetail/>",
        b"<StackResourceDetail><Metadata>[</Metadata></StackResourceDetail>",
        b'<!DOCTYPE a [<!ENTITY e "x">]><StackResourceDetail><Metadata>{}</Metadata></StackResourceDetail>',
    ],
)
def test_xml_without_metadata_is_an_error(world, there, make, body):
    source = make("cfn")
    world.fails = [Said(200, body)]
    with pytest.raises(Unreachable):
        source.fetch(0)


# Objects


@pytest.mark.parametrize("etags", [True, False])
def test_an_unchanged_object_is_not_downloaded(world, there, make, etags):
    world.etags = etags
    source = make("request")
    source.fetch(0)
    assert source.fetch(0) is None
    named = "if-none-match" if etags else "if-modified-since"
    assert named in there.asked[-1].headers
    put(world, OTHER)
    assert source.fetch(0).entries == [{"id": "c2"}]


def test_a_store_without_conditional_requests_is_polled_by_head(world, there, make):
    world.conditional = False
    source = make("request")
    assert [source.fetch(0) is None for _ in range(4)] == [False, True, True, True]
    assert there.verbs == ["GET", "GET", "HEAD", "HEAD"]
    put(world, OTHER)
    assert source.fetch(0).entries == [{"id": "c2"}]


def test_two_documents_in_one_second_without_an_etag(world, there, make):
    world.etags = False
    world.modified = datetime.now(UTC) + timedelta(seconds=1)
    source = make("request")
    source.fetch(0)
    world.document = OTHER
    assert source.fetch(0).entries == [{"id": "c2"}]


def test_a_missing_object_is_no_document_yet(world, there, make):
    world.document = b""
    source = make("request")
    assert source.fetch(0).entries == []
    assert source.fetch(0) is None
    put(world, DOCUMENT)
    assert source.fetch(0).entries == [ENTRY]


def test_redirects_are_followed_within_a_limit(world, there, make):
    source = make("request")
    world.fails = [Said(307, headers={"Location": "/object"})]
    assert source.fetch(0).entries == [ENTRY]
    world.fails = [Said(307, headers={"Location": "/object"})] * 10
    with pytest.raises(Unreachable, match="without end"):
        source.fetch(0)


@pytest.mark.parametrize("url", ["", "ftp://x/y", "http://", "nothing", "http://x:port/", "http://x/\x01", "http://[/"])
def test_an_invalid_url_is_refused(tmp_path, url):
    with pytest.raises(Unreachable, match="URL"):
        Request({"metadata_url": url}, Making()).fetch(0)


# Queues


def test_the_newest_of_several_messages_counts(world, there, make):
    world.messages = [DOCUMENT] * 45 + [OTHER]
    source = make("zaqar")
    assert source.fetch(0).entries == [{"id": "c2"}]
    assert [each.query.get("marker") for each in there.asked[-3:]] == [None, "0-19", "0-39"]
    assert source.fetch(0) is None
    assert there.asked[-1].query["marker"] == "0-45"


def test_forged_and_older_messages_hide_no_genuine_one(world, there, tmp_path):
    old, new = (
        sign(document, agent_key="s.key", server_id="s", revision=revision)
        for revision, document in ((1, DOCUMENT), (2, OTHER))
    )
    world.messages = [new, old, DOCUMENT]
    verifier = Verifier("s.key", tmp_path, lambda *_: None)
    source = Zaqar(login(there, queue_id="q"), Making(verifier=verifier))
    assert source.fetch(0).entries == [{"id": "c2"}]
    source.close()


def test_a_page_that_could_not_be_read_is_read_again(world, make):
    world.messages = [DOCUMENT] * 20 + [OTHER]
    source = make("zaqar")
    world.failing_after = "0-19"
    with pytest.raises(Unreachable):
        source.fetch(0)
    world.failing_after = None
    assert source.fetch(0).entries == [{"id": "c2"}]


def test_a_service_that_ignores_markers_is_not_polled_forever(world, there, make):
    world.messages = [DOCUMENT] * 19 + [OTHER]
    world.knows_markers = False
    assert make("zaqar").fetch(0).entries == [{"id": "c2"}]
    assert len([each for each in there.asked if each.path.endswith("/messages")]) == 2


def test_a_message_stays_for_the_next_agent_process_and_an_equal_one_is_no_news(world, make):
    assert make("zaqar").fetch(0) is None
    for _ in range(2):
        put(world, DOCUMENT)
        source = make("zaqar")
        assert source.fetch(0).entries == [ENTRY]
    put(world, DOCUMENT)
    assert source.fetch(0) is None


def test_a_recreated_queue_is_read_from_its_beginning(world, make):
    world.messages = [OTHER, DOCUMENT]
    source = make("zaqar")
    assert source.fetch(0).entries == [ENTRY]
    world.messages = [OTHER]  # before the marker
    source._marker = "0-0"
    found = [source.fetch(0) for _ in range(20)]
    assert [each.entries for each in found if each] == [[{"id": "c2"}]]


# TLS


@pytest.fixture
def secure(world, tmp_path) -> Iterator[tuple[Answering, str]]:
    """A server, and the file to trust it by."""
    own = Authority.of_loopback(tmp_path)
    with answering(world.decide, own) as running:
        yield running, str(own.file)


@pytest.mark.parametrize("key", ["ca_certificate", "ca_file", None])
def test_a_server_is_trusted_by_the_configured_ca_file(secure, key):
    there, file = secure
    more = {key: file} if key else {}
    source = Cfn(cfn_section(there, **more), Making(ca_file=None if key else file))
    assert source.fetch(0).entries == [ENTRY]
    source.close()


@pytest.mark.parametrize("file", [None, "/not/there.pem"])
def test_a_server_with_an_unknown_ca_is_refused(secure, file):
    there, _ = secure
    source = Cfn(cfn_section(there), Making(ca_file=file))
    with pytest.raises(Unreachable, match=r"CERTIFICATE_VERIFY_FAILED|FileNotFound"):
        source.fetch(0)
    source.close()
