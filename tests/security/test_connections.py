"""Attacks by connections and by HTTP itself; none needs a token."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
from contextlib import ExitStack, suppress

import psycopg
import pytest
import uvloop

from stoker.serve.protocol import _ResponseWriter
from support import databases
from support.agent_protocol import deploy, spoken_agent
from support.availability import assert_ends, assert_harmless
from support.events import event_stream
from support.raw import connect, is_closed, read_answer, send_all
from support.server import Answer, Served, served

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """Short patience, few connections."""
    flags = ("--client-timeout", "1")
    more = ("--max-connections-per-address", "20")
    with served(tmp_path_factory.mktemp("hasty"), *flags, *more) as running:
        yield running


def assert_refused(stoker: Served, statuses: set[int], *parts: bytes) -> Answer:
    """Send a request, which is answered with one of the statuses and the end of the connection."""
    with connect(stoker) as connection:
        send_all(connection, *parts)
        answer = read_answer(connection)
        assert answer.status in statuses
        assert answer.headers["connection"] == "close"
        assert is_closed(connection)
    return answer


# What is refused


CHUNKED = b"POST /identity/v3/auth/tokens HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "megabytes", "statuses"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", 48, {431}),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", 48, {431}),
        (b"GET /", 40, {414}),
        (CHUNKED + b"2\r\n{}\r\n0\r\nX-T: ", 30, {400, 431}),
        (CHUNKED + b"2;ext=", 30, {400, 431}),
    ],
    ids=["value of a header", "name of a header", "URL", "trailer", "extension of a chunk"],
)
def test_no_part_of_a_request_may_be_large(stoker, start, megabytes, statuses):
    parts = [start, *[b"y" * (1024 * 1024)] * megabytes]
    assert_harmless(stoker, lambda: assert_refused(stoker, statuses, *parts))


def test_limits_of_a_request(stoker):
    """As large as may be, one byte more, in small pieces, and other words than HTTP's."""
    start, end = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ", b"\r\n\r\n"
    for size, status in ((65536, 200), (65537, 431)):
        with connect(stoker) as connection:
            connection.sendall(start + b"y" * (size - len(start) - len(end)) + end)
            assert read_answer(connection).status == status
    with connect(stoker) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send_all(connection, b"GET / HTTP/1.1\r\nX-A: ", *[b"y" * 64] * 1100)
        assert read_answer(connection).status == 431
    lines = b"".join(b"h%d: x\r\n" % number for number in range(500))
    assert_refused(stoker, {431}, b"GET /healthz HTTP/1.1\r\n" + lines + b"\r\n")
    assert_refused(stoker, {414}, b"GET /" + b"u" * 17000 + b" HTTP/1.1\r\n\r\n")
    for text, status in ((b"FETCH /v1 HTTP/1.1\r\n\r\n", 501), (b"GET nonsense HTTP/3\r\n\r\n", 400)):
        assert assert_refused(stoker, {status}, text).raw == b""


# Pipelining


def test_pipelined_requests_are_answered_in_order(stoker):
    body = b'{"auth": 1}'
    log_in = b"POST /identity/v3/auth/tokens HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    requests = (HEALTHZ + log_in + CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)) * 40
    with connect(stoker) as connection:
        connection.sendall(requests + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    statuses = [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 400, 400] * 40 + [200]


def test_pipelining_is_harmless(stoker):
    """Many requests in one write, and nobody reads the answers."""

    def attack():
        with ExitStack() as stack:
            for text in (HEALTHZ, b"GET /healthz HTTP/1.1\n\n", b"GET /v1/x/stacks HTTP/1.1\r\n\r\n"):
                connection = stack.enter_context(connect(stoker))
                connection.settimeout(1)
                with suppress(OSError):
                    connection.sendall(text * 50_000)

    assert_harmless(stoker, attack)


# Time


def test_a_connection_without_a_complete_request_is_ended(hasty):
    """Without any request, after one, and without the rest of a head or of a body."""
    with connect(hasty) as silent, connect(hasty) as kept, connect(hasty) as half, connect(hasty) as empty:
        kept.sendall(HEALTHZ)
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        empty.sendall(b"POST /identity/v3/auth/tokens HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        assert [read_answer(each).status for each in (kept, half, empty)] == [200, 408, 408]
        assert all(map(is_closed, (silent, kept, half, empty)))
    assert "Traceback" not in hasty.output


def test_a_long_poll_outlives_every_timeout(hasty):
    """Sent together with a keep-alive request after it, which waits for its turn."""
    key = spoken_agent(hasty).key
    poll = b"GET /agent/v1/document%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n"
    with connect(hasty) as connection:
        connection.sendall(poll % (b"", key.encode(), b""))
        etag = read_answer(connection).headers["etag"].encode()
        connection.sendall(poll % (b"?wait=4", key.encode(), b"If-None-Match: %s\r\n" % etag) + HEALTHZ)
        received = connection.recv(65536)
        assert received.startswith(b"HTTP/1.1 304 ")
        if b"HTTP/1.1 200 " not in received:
            assert read_answer(connection).status == 200


def test_a_client_that_does_not_read_is_ended(hasty):
    """Its answers fill the buffers: the server must not keep them for ever."""
    with connect(hasty) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            while True:
                connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        except ConnectionError:
            pass


# Connections


def test_connections_of_one_address_are_bounded(hasty):
    with ExitStack() as stack:
        own = "127.0.0.2"  # that of no other connection to this server
        held = [stack.enter_context(connect(hasty, source=own)) for _ in range(20)]
        refused = stack.enter_context(connect(hasty, source=own))
        answer = read_answer(refused)
        assert answer.status == 503
        assert answer.headers["retry-after"]
        other = stack.enter_context(connect(hasty, source="127.0.0.3"))
        other.sendall(HEALTHZ)
        assert read_answer(other).status == 200
        assert all(map(is_closed, held))
    assert hasty.output.count("connections.refused") == 1


def test_a_declared_proxy_has_no_limit_of_its_own(tmp_path):
    flags = ("--max-connections-per-address", "2", "--proxy-addresses", "127.0.0.0/24")
    with served(tmp_path, *flags) as stoker, ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(connect(stoker))
            connection.sendall(HEALTHZ)
            assert read_answer(connection).status == 200


def test_idle_connections_leave_room_for_others(tmp_path, monkeypatch):
    """As many as there may be files; half of them with half a head."""
    original = subprocess.Popen

    def few_files(*args, **more):
        return original(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 1024)), **more)

    monkeypatch.setattr("support.server.subprocess.Popen", few_files)
    with served(tmp_path) as stoker, ExitStack() as stack:
        monkeypatch.undo()

        def attack():
            for number in range(1100):
                connection = stack.enter_context(connect(stoker))
                if number % 2:
                    send_all(connection, b"GET /v1 HTTP/1.1\r\nX-")

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        try:
            assert_harmless(stoker, attack)
        finally:
            stack.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_response_on_a_lost_connection_is_dropped():
    """As of a request before the last one of a client that sent several: only the last one learns of the end."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        own, other = socket.socketpair()
        with other:
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=own)
            response, second = _ResponseWriter(transport, loop), _ResponseWriter(transport, loop)
            transport.abort()
            async with asyncio.timeout(60):
                while "closed=True" not in repr(transport):
                    await asyncio.sleep(0.001)
            response.write(b"head")
            response.write(b"body")
            second.write(b"head")
            second.close()

    uvloop.run(run())


# The end


def test_sigterm_lets_running_requests_end(stoker):
    """One waits for its body, two for an event, one was never read: each ends, and nothing is logged as a fault."""
    key, stream = spoken_agent(stoker).key, f"/events?subject=deployment:{deploy(stoker, 'some-server')['id']}"
    with ExitStack() as stack:
        uploading, polling, half, idle = (stack.enter_context(connect(stoker)) for _ in range(4))
        events = stack.enter_context(event_stream(stoker, stream))
        assert next(events).name == "status"
        uploading.sendall(b"POST /identity/v3/auth/tokens HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        polling.sendall(b"GET /agent/v1/document?wait=50 HTTP/1.1\r\nAuthorization: Bearer %s\r\n" % key.encode())
        polling.sendall(b'If-None-Match: "0"\r\n\r\n')
        half.sendall(b"GET /v1 HTTP/1.1\r\nX-")
        idle.sendall(HEALTHZ)
        assert read_answer(idle).status == 200
        assert_ends(stoker)
        answer = read_answer(uploading)
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert read_answer(polling).status in (200, 304)
        assert is_closed(half)
        assert is_closed(idle)
        assert list(events) == []
    assert "Traceback" not in stoker.output


def test_sigterm_ends_a_request_that_hangs(tmp_path, postgresql_server):
    """In the database, where nothing interrupts it."""
    with databases.postgresql_url(postgresql_server) as url, served(tmp_path, database=url) as stoker:
        with psycopg.connect(url) as locking, connect(stoker) as connection:
            locking.execute("LOCK TABLE configs IN ACCESS EXCLUSIVE MODE")
            path = f"/v1/{stoker.project}/software_configs"
            connection.sendall(f"GET {path} HTTP/1.1\r\nX-Auth-Token: {stoker.token}\r\n\r\n".encode())
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
            name = [databases.name_of(url)]
            stoker.until(lambda: locking.execute(waiting, name).fetchone() != (0,))
            assert stoker.stop() == 0
            assert read_answer(connection).status == 503
        assert "Traceback" not in stoker.output
