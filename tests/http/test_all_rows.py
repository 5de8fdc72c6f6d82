"""Every row of every face, asked with odd names, queries, headers and bodies: no 5xx, and the service stays well."""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.http.agent.routes import ROUTES as AGENT
from stoker.http.cfn.routes import ROUTES as CFN
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.identity.routes import ROUTES as IDENTITY
from stoker.http.messaging.routes import ROUTES as MESSAGING
from stoker.http.objects.routes import ROUTES as OBJECTS
from stoker.http.stoker.routes import ROUTES as STOKER
from support.search import examples
from support.server import Served, served_on

pytestmark = pytest.mark.slow

#: Each face as often as the others, however many rows it has.
ROWS = st.one_of(*map(st.sampled_from, (AGENT, CFN, HEAT, STOKER, IDENTITY, MESSAGING, OBJECTS)))
CLIENT = "123e4567-e89b-12d3-a456-426614174000"

odd_names = st.sampled_from(
    [
        *("x", "%ff", "%ed%a0%80", "%00", "..", "%2e%2e", "a%2Fb", "%E2%80%AE", "%20", "'", "%25", "%", "%zz", ";"),
        *("AUTH_x", "-1", "9" * 20, "detail", "preview", "x" * 300, "%F0%9F%92%A5"),
    ]
)
values = odd_names | st.sampled_from(
    [*("1", "true", "json", "xml", "1e9", "%D9%A3", "2147483648", "9223372036854775808", "1.5", "(", "a,b", "", "/")]
)
queries = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("limit", "marker", "name", "detailed", "format", "prefix", "delimiter", "ids"),
                *("multipart-manifest", "temp_url_sig", "temp_url_expires", "pop", "echo"),
                *("include_claimed", "with_count", "sort_keys", "status", "after", "tags", "nested_depth", "type"),
                *("inline", "Action", "StackName", "stream", "offset", "filename"),
            ]
        ),
        values,
    ),
    max_size=3,
)
headers = st.dictionaries(
    st.sampled_from(
        [
            *("Range", "If-None-Match", "If-Match", "If-Modified-Since", "X-Delete-At", "Accept"),
            *("Content-Type", "X-Copy-From", "X-Object-Meta-a", "X-Container-Read", "Etag", "Cookie"),
            *("X-Versions-Enabled", "X-Object-Manifest", "X-Timestamp", "X-Project-ID", "Host"),
            *("URL-Signature", "URL-Expires", "URL-Methods", "URL-Paths", "X-Subject-Token", "Authorization"),
            *("X-Account-Meta-Temp-URL-Key", "X-Container-Meta-Quota-Bytes", "Content-Disposition", "X-Newest"),
        ]
    ),
    st.sampled_from(
        [
            *("", "x", "-1", "*", "nan", "1e400", "9" * 20, "é", "true", "/a/b", "x" * 5000, ".r:*", "Bearer x", '"a"'),
            *("bytes=0-1", "bytes=-1", "bytes=5-1", "bytes=0-0,2-3", "bytes=", "Mon, 01 Jan 2024 00:00:00 GMT"),
            *("application/x-www-form-urlencoded", "text/plain;charset=utf-16", "9999-99-99T99:99:99Z", CLIENT),
            *("0001-01-01T00:00:00", "10000-01-01T00:00:00Z", "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, Signature=x"),
        ]
    ),
    max_size=2,
)
bodies = st.binary(max_size=8) | st.sampled_from(
    [
        *(b"", b"{}", b"[]", b"null", b"5", b'"x"', b"{", b'{"a":1}', b"a=b&c=%ff", b"/a/b\n%ff\n"),
        b'{"messages":[{"body":1,"ttl":1e400}]}',
        b'{"messages":[{"body":"\\ud800","ttl":60}]}',
        b'{"ttl":99999999999999999999,"grace":-1}',
        b'{"subscriber":"http://127.0.0.1:1/","ttl":60,"options":{}}',
        b'{"paths":["messages"],"methods":["GET"],"expires":"2030-01-01T00:00:00"}',
        b'[{"op":"replace","path":"/metadata/a","value":1}]',
        b'{"name":"\\u0000"}',
    ]
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory) -> Iterator[Served]:
    with served_on(request, tmp_path_factory.mktemp("rows")) as running:
        yield running


def there(stoker: Served) -> dict[str, str]:
    """A queue, a container and an object, made again where they are gone."""
    token = {"X-Auth-Token": stoker.token}
    stoker.request("PUT", "/messaging/v2/queues/q", {}, {**token, "Client-ID": CLIENT})
    store = f"/object-store/v1/AUTH_{stoker.project}"
    stoker.request("PUT", f"{store}/c", b"", token)
    stoker.request("PUT", f"{store}/c/o", b"0123456789", token)
    account = f"AUTH_{stoker.project}"
    return {"account": account, "container": "c", "object": "o", "project": stoker.project, "queue": "q"}


def ask(stoker: Served, verb: str, path: str, headers: dict[str, str], body: bytes) -> int:
    """As it is said, which urllib would not do; the status."""
    connection = http.client.HTTPConnection("127.0.0.1", stoker.port, timeout=60)
    try:
        connection.putrequest(verb, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value.encode())
        if verb not in ("GET", "HEAD"):
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(None if verb in ("GET", "HEAD") else body)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@settings(
    max_examples=examples(250),
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), row=ROWS, query=queries, said=headers, body=bodies, right=st.booleans())
def test_no_route_fails_with_odd_requests(stoker, data, row, query, said, body, right):
    known = there(stoker) if right else {"project": stoker.project}
    path = re.sub(r"{(\w+)\*?}", lambda name: known.get(name[1]) or data.draw(odd_names), row.path)
    if query:
        path += "?" + "&".join(f"{name}={value}" for name, value in query)
    sent = {"X-Auth-Token": stoker.token, "Client-ID": CLIENT, **said}
    assert ask(stoker, row.verb, path, sent, body) < 500, stoker.output[-3000:]


def test_the_server_is_healthy_after_all_requests(stoker):
    assert stoker.request("GET", "/healthz").status == 200
    assert "Traceback" not in stoker.output
