"""What a call asks of the database does not grow with what the account holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.in_process import Inside

pytestmark = pytest.mark.filterwarnings("ignore")


class Counted(Inside):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = f"/object-store/v1/AUTH_{self.project}"

    def put(self, path: str) -> None:
        answer = self.client.put(self.root + path, headers=self.headers, content=b"data")
        assert answer.status_code == 201, answer.text

    def cost(self, verb: str, path: str) -> int:
        def ask() -> None:
            answer = self.client.request(verb, self.root + path, headers=self.headers)
            assert answer.status_code < 300, answer.text

        return self.counted(ask)


@pytest.fixture(scope="module")
def counted(tmp_path_factory) -> Iterator[Counted]:
    program = Counted(tmp_path_factory.mktemp("counted"))
    for size in (3, 60):
        program.put(f"/c-{size}")
        for each in range(size):
            program.put(f"/c-{size}/folder{each}/o{each}")
            program.put(f"/c-{size}/o")
    yield program
    program.close()


@pytest.mark.parametrize(
    ("verb", "below"),
    [
        ("HEAD", ""),
        ("GET", ""),
        ("GET", "?delimiter=/"),
        ("GET", "?prefix=folder&delimiter=/&format=json"),
        ("GET", "/o"),
        ("HEAD", "/o"),
        ("POST", "/o"),
        ("PUT", "/o"),
        ("DELETE", "/o"),
    ],
)
def test_statements_for_a_container_do_not_grow(counted, verb, below):
    costs = [counted.cost(verb, f"/c-{size}{below}") for size in (3, 60)]
    assert costs[0] == costs[1]
    assert costs[0] <= 14


@pytest.mark.parametrize("query", ["", "?format=json", "?delimiter=-"])
def test_statements_for_an_account_do_not_grow(counted, query):
    before = counted.cost("GET", query)
    for each in range(5):
        counted.put(f"/more{query[1:2]}{each}")
    assert counted.cost("GET", query) == before <= 4
