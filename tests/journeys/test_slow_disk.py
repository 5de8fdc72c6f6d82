"""A disk that does not answer delays what has to be stored, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from support import waiting
from support.disks import is_synchronizing, slow_disk
from support.own_postgresql import own_postgresql
from support.server import Served, served

pytestmark = pytest.mark.slow

#: A Stoker, and a function that returns the ids of the processes that write its database.
Site = tuple[Served, Callable[[], Sequence[int]]]


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request, tmp_path) -> Iterator[Site]:
    with ExitStack() as left:
        if request.param == "sqlite":
            stoker = left.enter_context(served(tmp_path))
            yield stoker, lambda: [stoker.process.pid]
            return
        postgresql = left.enter_context(own_postgresql(is_small=True))
        yield left.enter_context(served(tmp_path, database=postgresql.url)), postgresql.pids


def test_requests_that_read_are_answered_while_the_disk_does_not_answer(site):
    stoker, find_pids = site
    path, answers = "/software_configs", []

    def create() -> None:
        answers.append(stoker.heat("POST", path, {"name": "late", "config": ""}))

    stored = read_names(stoker, path)  # logs in
    writer = threading.Thread(target=create)
    with slow_disk(find_pids(), 3600):
        writer.start()
        waiting.until(lambda: is_synchronizing(find_pids()))
        assert read_names(stoker, path) == stored
        assert stoker.request("GET", "/healthz").status == 200
        assert not answers
    writer.join(60)
    assert [answer.status for answer in answers] == [200]
    assert read_names(stoker, path) == [*stored, "late"]


def read_names(stoker: Served, path: str) -> list[Any]:
    answer = stoker.heat("GET", path)
    assert answer.status == 200, answer.raw
    return [config["name"] for config in answer.body["software_configs"]]
