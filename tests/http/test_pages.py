"""Lists that are read and sent page by page."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from stoker.http import pages
from stoker.http.access import Caller
from stoker.http.threads import in_thread


class Rows:
    """Rows 1, 2, … of so many bytes each; what was asked for."""

    def __init__(self, count: int, size: int = 10) -> None:
        self.all = [(number, "x" * size) for number in range(1, count + 1)]
        self.asked: list[tuple[int | None, int]] = []

    def __call__(self, tx: Any, after: int | None, most: int) -> list[tuple[int, Any]]:
        self.asked.append((after, most))
        return [row for row in self.all if row[0] > (after or 0)][:most]


def answer(rows: Rows, **more: Any) -> tuple[bool, list[Any]]:
    """Whether it was sent in pieces, and the list."""
    call: Any = SimpleNamespace(caller=Caller(), in_thread=in_thread, read=nullcontext)
    reply = pages.reply(call, None, "rows", rows, first=2, **more)
    if not hasattr(reply, "chunks"):
        return False, json.loads(reply.content)["rows"]

    async def collect() -> bytes:
        return b"".join([chunk async for chunk in reply.chunks])

    return True, json.loads(asyncio.run(collect()))["rows"]


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 1050, 3000])
def test_a_short_list_is_one_answer(count):
    rows = Rows(count)
    assert answer(rows) == (False, [shown for _, shown in rows.all])


@pytest.mark.parametrize("size", [100_000, 600_000])
def test_a_long_list_is_streamed_in_pages(size):
    rows = Rows(60, size)
    streamed, shown = answer(rows)
    assert streamed
    assert shown == [shown for _, shown in rows.all]
    assert max(most for _, most in rows.asked) <= 10


def test_large_rows_reduce_the_size_of_the_next_page():
    rows = Rows(0)
    rows.all = [(number, "x" * (10 if number <= 3000 else 500_000)) for number in range(1, 3061)]
    read: list[int] = []

    def fit(tx: Any, after: int | None, most: int) -> int:
        sizes = itertools.accumulate(len(text) for _, text in rows.all[after or 0 :][:most])
        read.append(max(1, sum(size <= 1_000_000 for size in sizes)))
        return read[-1]

    streamed, shown = answer(rows, fit=fit)
    assert (streamed, len(shown)) == (True, 3060)
    assert max(read) == 1000
    assert max(most for after, most in rows.asked if (after or 0) > 3000) <= 10


def test_a_list_may_have_a_limit_and_a_start():
    rows = Rows(3000)
    assert answer(rows, limit=0) == (False, [])
    assert len(answer(rows, limit=7)[1]) == 7
    assert len(answer(rows, limit=2000)[1]) == 2000
    assert len(answer(rows, start=2990, limit=100)[1]) == 10
    large = Rows(60, 200_000)
    streamed, shown = answer(large, limit=50, start=5)
    assert (streamed, len(shown)) == (True, 50)


def test_deployments_and_configs_have_limit_and_marker(stoker):
    config = [stoker.create("software_configs", name=f"c{n}")["id"] for n in range(5)]
    body = {"config_id": config[0], "server_id": "limited"}
    made = [stoker.create("software_deployments", **body)["id"] for _ in range(5)]

    def ids(path: str) -> list[str]:
        [listed] = stoker.heat("GET", path).body.values()
        return [each["id"] for each in listed]

    path = "/software_deployments?server_id=limited"
    assert ids(path) == made
    assert ids(f"{path}&limit=2") == made[:2]
    assert ids(f"{path}&limit=2&marker={made[1]}") == made[2:4]
    assert ids(f"{path}&marker={made[3]}") == made[4:]
    assert ids(f"{path}&marker=unknown") == made
    assert stoker.heat("GET", f"{path}&limit=x").status == 400
    assert ids("/software_configs?limit=2") == [config[4], config[3]]
    assert ids(f"/software_configs?limit=2&marker={config[3]}") == [config[2], config[1]]
    for id in made:
        assert stoker.heat("DELETE", f"/software_deployments/{id}").status == 204
    for id in config:
        assert stoker.heat("DELETE", f"/software_configs/{id}").status == 204
