"""What a call asks of the database does not grow with what the account holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.in_process import Inside

pytestmark = pytest.mark.filterwarnings("ignore")


def ask(program: Inside, verb: str, path: str) -> None:
    root = f"/object-store/v1/AUTH_{program.project}"
    answer = program.request(verb, root + path, b"data" if verb == "PUT" else b"")
    assert answer.status < 300, answer.raw


def cost(program: Inside, verb: str, path: str) -> int:
    return program.counted(lambda: ask(program, verb, path))


@pytest.fixture(scope="module")
def counted(tmp_path_factory) -> Iterator[Inside]:
    program = Inside(tmp_path_factory.mktemp("counted"))
    for size in (3, 60):
        ask(program, "PUT", f"/c-{size}")
        for each in range(size):
            ask(program, "PUT", f"/c-{size}/folder{each}/o{each}")
            ask(program, "PUT", f"/c-{size}/o")
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
    costs = [cost(counted, verb, f"/c-{size}{below}") for size in (3, 60)]
    assert costs[0] == costs[1]
    assert costs[0] <= 14


@pytest.mark.parametrize("query", ["", "?format=json", "?delimiter=-"])
def test_statements_for_an_account_do_not_grow(counted, query):
    before = cost(counted, "GET", query)
    for each in range(5):
        ask(counted, "PUT", f"/more{query[1:2]}{each}")
    assert cost(counted, "GET", query) == before <= 4
