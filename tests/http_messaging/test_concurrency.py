"""Many clients at once: no client gets a message twice, and none misses one."""

from __future__ import annotations

import threading
import uuid
from collections import Counter

import pytest

from http_messaging.conftest import Zaqar
from support import databases
from support.concurrency import call_together
from support.server import SHARED_SECRET, served

CLIENTS, MESSAGES = 6, 120


def filled(zaqar, queue):
    for start in range(0, MESSAGES, 20):
        zaqar.post(queue, *range(start, start + 20))


@pytest.fixture(params=["one process", "two processes"])
def several(request, tmp_path):
    """Clients of one Stoker on SQLite, or of two on one PostgreSQL."""
    if request.param == "one process":
        with served(tmp_path) as running:
            yield [Zaqar(running)] * CLIENTS
        return
    for name in "ab":
        tmp_path.joinpath(name).mkdir()
    with (
        databases.postgresql_url(request.getfixturevalue("postgresql_server")) as url,
        served(tmp_path / "a", *SHARED_SECRET, database=url) as first,
        served(tmp_path / "b", *SHARED_SECRET, database=url, login_of=first) as second,
    ):
        yield [Zaqar(first), Zaqar(second)] * (CLIENTS // 2)


def test_concurrent_pops_share_no_message(several):
    first = several[0]
    queue = first.queue()
    filled(first, queue)

    def pop(n):
        got = []
        while some := several[n].pop(queue, 3):
            got += some
        return got

    got = Counter(body for some in call_together(CLIENTS, pop) for body in some)
    assert set(got.values()) == {1}
    assert sorted(got) == list(range(MESSAGES))
    assert first.bodies(queue) == []


def test_concurrent_posts_create_a_queue_once(several):
    queue = f"/queues/{uuid.uuid4()}"

    def post(n):
        return [id for k in range(10) for id in several[n].post(queue, f"{n}-{k}")]

    ids = [id for some in call_together(CLIENTS, post) for id in some]
    pages = several[0].pages(f"{queue}/messages?echo=true&limit=20", "messages")
    seen = [each for page in pages for each in page["messages"]]
    assert sorted(each["id"] for each in seen) == sorted(ids)
    for n in range(CLIENTS):  # each client's own in the order in which they were acknowledged
        assert [each["body"] for each in seen if each["body"].startswith(f"{n}-")] == [f"{n}-{k}" for k in range(10)]


def test_a_reader_with_markers_misses_no_message(several):
    """Places are given in the order of commits: none appears behind one that was read already."""
    queue, posting = several[0].queue(), threading.Event()
    posted, read = [], []

    def reader():
        path = f"{queue}/messages?echo=true&limit=20"
        while True:
            done = not posting.is_set()
            page = several[0]("GET", path).body
            read.extend(each["body"] for each in page["messages"])
            if page["links"]:
                path = page["links"][0]["href"].removeprefix("/v2")
            elif done:
                return

    posting.set()
    reading = threading.Thread(target=reader)
    reading.start()

    def post(n):
        for k in range(15):
            several[n].post(queue, f"{n}-{k}")
            posted.append(f"{n}-{k}")

    call_together(CLIENTS, post)
    posting.clear()
    reading.join(60)
    assert sorted(read) == sorted(posted)


def test_deleting_a_queue_in_use_is_no_error(several):
    queue = "/queues/busy"

    def use(n):
        said = []
        for k in range(12):
            match n % 4:
                case 0:
                    said.append(several[n]("DELETE", queue).status)
                case 1:
                    said.append(several[n]("GET", f"{queue}/messages").status)
                case 2:
                    said.append(several[n]("DELETE", f"{queue}/messages?pop=2").status)
                case _:
                    said.append(several[n]("POST", f"{queue}/messages", {"messages": [{"body": k}] * 5}).status)
                    said.append(several[n]("PUT", queue, {"a": 1}).status)
        return said

    statuses = {status for some in call_together(CLIENTS, use) for status in some}
    assert all(status < 300 for status in statuses), statuses
