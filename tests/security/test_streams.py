"""Event streams that nobody reads."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from support.accounts import create_account
from support.agent_protocol import deploy, spoken_agent
from support.availability import assert_harmless

LOG_BYTES = 6 * 1024 * 1024
PER_TOKEN = 16


@pytest.fixture(scope="module")
def path(stoker):
    """The log of a run that has written much and goes on."""
    agent = spoken_agent(stoker)
    deployment = deploy(stoker, agent.id)
    [entry] = agent.entries()
    piece = b"x" * 250_000
    for offset in range(0, LOG_BYTES, len(piece)):
        assert agent.log(entry["id"], offset, piece).status == 200
    return f"/v1/{stoker.project}/software_deployments/{deployment['id']}/logs"


def events(path):
    """The path of the stream of a log."""
    project, deployment = path.split("/")[2], path.split("/")[-2]
    return f"/v1/{project}/events?subject=deployment:{deployment}"


def open_stream(stoker, path, token):
    """A stream of the log, of which the head of the answer has been read; and that head."""
    connection = socket.create_connection(("127.0.0.1", stoker.port), timeout=60)
    head = f"GET {events(path)} HTTP/1.1\r\nHost: s\r\nX-Auth-Token: {token}\r\nAccept: text/event-stream\r\n\r\n"
    connection.sendall(head.encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        got = connection.recv(64)
        assert got, answer
        answer += got
    return connection, answer.lower()


def test_unread_streams_use_little_memory(stoker, path):
    def attack():
        token = create_account(stoker, "reader").token  # the streams of an earlier attack may not have ended yet
        with ExitStack() as open_ones:
            answers = []
            for _ in range(30):
                connection, head = open_stream(stoker, path, token)
                open_ones.enter_context(connection)
                answers.append(head)
            one_more = stoker.request("GET", events(path), headers={"X-Auth-Token": token})
            assert one_more.status == 429
            assert "16 event streams" in one_more.body["error"]["message"]
            assert stoker.request("GET", path, headers={"X-Auth-Token": token}).status == 200
        served = [head for head in answers if head.startswith(b"http/1.1 200")]
        refused = [head for head in answers if head.startswith(b"http/1.1 429")]
        assert (len(served), len(refused)) == (PER_TOKEN, 30 - PER_TOKEN)
        assert all(b"retry-after: 10" in head for head in refused)
        # Places are free again as soon as the connections are gone.
        stoker.until(lambda: has_place(token))

    def has_place(token):
        connection, head = open_stream(stoker, path, token)
        connection.close()
        return head.startswith(b"http/1.1 200")

    assert_harmless(stoker, attack)
