"""One agent's key that holds thousands of polls, and ids that fill the cache of documents."""

from __future__ import annotations

import select
import socket

from support.agent_protocol import deploy, spoken_agent
from support.availability import assert_harmless


def held_poll(stoker, agent, etag):
    """A poll's connection, its request sent."""
    connection = socket.create_connection(("127.0.0.1", stoker.port), timeout=60)
    head = f"GET /agent/v1/document?wait=60 HTTP/1.1\r\nHost: s\r\nAuthorization: Bearer {agent.key}\r\n"
    connection.sendall(f"{head}If-None-Match: {etag}\r\nConnection: close\r\n\r\n".encode())
    return connection


def answer_of(connection):
    with connection, connection.makefile("rb") as answer:
        return answer.read()


def test_concurrent_polls_of_one_key_supersede_each_other(stoker):
    agent = spoken_agent(stoker)

    def attack():
        etag = agent.document().headers["ETag"]
        polls = [held_poll(stoker, agent, etag) for _ in range(150)]
        superseded = []
        while len(superseded) < 149:
            for poll in select.select(polls, [], [], 60)[0]:
                polls.remove(poll)
                superseded.append(answer_of(poll))
        assert all(answer.startswith(b"HTTP/1.1 304") for answer in superseded)
        assert all(b"retry-after: 10" in answer.lower() for answer in superseded)
        deploy(stoker, agent.id, config="#!/bin/sh\n" + "x" * 400_000)
        assert answer_of(polls[0]).startswith(b"HTTP/1.1 200")

    assert_harmless(stoker, attack)


def test_a_weak_etag_equals_the_strong_one(stoker):
    agent = spoken_agent(stoker)
    etag = agent.document().headers["ETag"]
    for sent in (f"W/{etag}", f'"other", W/{etag}', etag):
        assert agent.document(etag=sent).status == 304
    assert agent.document(etag='W/"other"').status == 200
