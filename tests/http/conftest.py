"""One Stoker for what asks without leaving anything behind."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from support.server import Answer, Served, served


@pytest.fixture(scope="session")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http")) as running:
        yield running


class Refused:
    """Asks, and holds the answer to Heat's shape of an error."""

    def __init__(self, stoker: Served) -> None:
        self.stoker = stoker

    def __call__(self, verb: str, path: str, body: object = None, *, status: int = 400) -> str:
        """The error's message."""
        answer = self.stoker.heat(verb, path, body)
        return self.check(answer, status)

    @staticmethod
    def check(answer: Answer, status: int) -> str:
        assert answer.status == status, answer.raw[:400]
        said = answer.body
        assert said["code"] == status
        assert said["title"]
        assert said["explanation"]
        assert said["error"]["traceback"] is None
        assert said["error"]["type"]
        return said["error"]["message"]


#: What a refused request may not change: the tables of everything that requests make.
_TABLES = (
    *("stacks", "resources", "snapshots", "steps", "edges", "configs", "deployments", "runs", "servers", "enrollments"),
    *("triggers", "trigger_targets", "schedules"),
)


@pytest.fixture
def refused(stoker) -> Iterator[Refused]:
    """Whatever is refused leaves everything as it was."""
    database = sqlite3.connect(f"file:{stoker.state_dir / 'stoker.db'}?mode=ro", uri=True)
    with contextlib.closing(database):

        def everything() -> dict[str, list[Any]]:
            return {table: database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in _TABLES}

        before = everything()
        yield Refused(stoker)
        assert everything() == before
    assert stoker.request("GET", "/healthz").status == 200
