"""Lists of servers, whole and in pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stoker.http import pages
from stoker.model.server import Kind, Server
from stoker.store import server_lists, servers
from support.in_process import Inside


@pytest.fixture
def site(tmp_path, store) -> Iterator[Inside]:
    """A program with seven servers, of which two are databases."""
    inside = Inside(tmp_path, store)

    def add(tx: Any, number: int) -> None:
        values = {"id": f"id-{number}", "name": f"server-{number}", "kind": Kind.ENROLLED, "created_at": tx.now}
        labels = {"tier": "db" if number in (2, 4) else "web"}
        servers.add(tx, Server(project_id=inside.project, labels=labels, key_generation=1, **values))

    for number in range(7):
        store.write(lambda tx, number=number: add(tx, number))
    yield inside
    inside.close()


def get(site: Inside, path: str, key: str) -> list[Any]:
    answer = site.client.get(f"/v1/{site.project}{path}", headers=site.headers)
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()[key]
    return found


def names(site: Inside, path: str) -> str:
    return "".join(server["name"].removeprefix("server-") for server in get(site, path, "servers"))


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("", "0123456"),
        ("&labels=tier=web", "01356"),
        ("&selector=not%20tier=db", "01356"),
        ("&name=server-[0-35]&name=id-6&name=nobody", "012356"),
        ("&name=*&labels=tier=web", "01356"),
    ],
)
def test_servers_are_listed_whole_and_in_pages(site, query, whole):
    assert names(site, f"/servers?{query}") == whole
    assert names(site, f"/servers?limit=2{query}") == whole[:2]
    assert names(site, f"/servers?limit=2&marker=id-1{query}") == whole[2:4]
    assert names(site, f"/servers?marker=id-3{query}") == whole[whole.index("3") + 1 :]
    assert names(site, f"/servers?marker=unknown{query}") == whole
    assert names(site, f"/servers?limit=9&marker=id-6{query}") == ""


@pytest.mark.parametrize("query", ["", "?selector=not%20tier=db"])
def test_a_long_list_is_read_in_parts(site, monkeypatch, query):
    reply, parts = pages.reply, []

    def reply_in_parts(request: Any, tx: Any, name: str, read: pages.Read, **options: Any) -> Any:
        def record(*arguments: Any) -> list[tuple[Any, Any]]:
            parts.append(read(*arguments))
            return parts[-1]

        return reply(request, tx, name, record, **{**options, "first": 2})

    monkeypatch.setattr(pages, "reply", reply_in_parts)
    monkeypatch.setattr(pages, "LARGE", 1)
    monkeypatch.setattr(pages, "_MOST", 2)
    monkeypatch.setattr(server_lists, "_FIRST", 1)
    assert names(site, f"/servers{query}") == ("01356" if query else "0123456")
    assert len(parts) > 2
