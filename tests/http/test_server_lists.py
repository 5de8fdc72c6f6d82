"""Lists of servers, whole and in pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stoker.http import pages
from stoker.model.server import Kind, Server
from stoker.servers.presence import store_facts
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


def count(site: Inside, query: str) -> Any:
    return site.call("GET", f"/server_counts?{query}")["server_counts"]


def names(site: Inside, path: str) -> str:
    return "".join(server["name"].removeprefix("server-") for server in site.call("GET", path)["servers"])


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


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("sort=-name", "6543210"),
        ("sort=name&selector=tier=web", "01356"),
        ("sort=-created_at&name=server-[0-35]&labels=tier=web", "5310"),
        ("sort=status&status=NEVER_SEEN", "0123456"),
        ("sort=last_seen&status=ONLINE", ""),
    ],
)
def test_servers_are_sorted_in_pages(site, query, whole):
    assert names(site, f"/servers?{query}") == whole
    pages = [names(site, f"/servers?limit=2&{query}")]
    while pages[-1]:
        pages.append(names(site, f"/servers?limit=2&{query}&marker=id-{pages[-1][-1]}"))
    assert "".join(pages) == whole
    assert count(site, query.partition("&")[2])["total"] == len(whole)


def test_numbers_in_names_count_by_their_values(site):
    site.store.write(lambda tx: [servers.change(tx, f"id-{n}", name=f"web{n * 5}") for n in range(7)])
    listed = site.call("GET", "/servers?sort=name")["servers"]
    assert [server["name"] for server in listed] == [f"web{n * 5}" for n in range(7)]


def test_servers_are_counted_as_they_are_listed(site):
    assert count(site, "") == {"total": 7, "outdated": 0, "by_status": {"NEVER_SEEN": 7}}
    assert count(site, "selector=tier=db") == {"total": 2, "outdated": 0, "by_status": {"NEVER_SEEN": 2}}
    assert count(site, "status=ONLINE") == {"total": 0, "outdated": 0, "by_status": {}}


def test_facts_are_listed_as_selectors_name_them(site):
    def describe(tx: Any) -> None:
        for number, family in enumerate(("debian", "debian", "redhat")):
            facts = {"os": {"family": family}, "hooks": ["script", "ansible"], "custom": {"gpu": True}}
            store_facts(tx, f"id-{number}", facts)

    site.store.write(describe)
    listed = {fact["name"]: fact for fact in site.call("GET", "/server_facts")["server_facts"]}
    assert listed["tier"]["values"] == [{"value": "web", "count": 5}, {"value": "db", "count": 2}]
    assert listed["os.family"]["values"] == [{"value": "debian", "count": 2}, {"value": "redhat", "count": 1}]
    assert listed["hooks"]["count"] == 3
    assert [name for name, fact in listed.items() if fact["is_label"]] == ["tier"]
    for name, fact in listed.items():
        for value in fact["values"]:
            assert count(site, f"selector={name}={value['value']}")["total"] == value["count"]


def test_a_list_for_a_group_says_whose_policy_refuses_it(site):
    policy = {"allow": "PROJECT", "groups": ["ansible"]}
    site.store.write(lambda tx: servers.change(tx, "id-1", policy=policy))
    denials = {server["id"]: server["denial"] for server in site.call("GET", "/servers?group=script")["servers"]}
    assert [id for id, denial in denials.items() if denial is not None] == ["id-1"]
    assert "ansible" in denials["id-1"]
    assert "denial" not in site.call("GET", "/servers")["servers"][0]


def test_statements_of_a_list_for_a_group_do_not_grow(site):
    template = {"heat_template_version": "2018-08-31", "resources": {"server": {"type": "OS::Heat::DeployedServer"}}}
    for name in ("one", "other"):
        site.create_stack(name, template)
    servers_of_stacks = site.call("GET", "/servers?group=script")["servers"][7:]
    assert len({server["stack_id"] for server in servers_of_stacks}) == 2
    policy = {"allow": "STACK", "groups": ["ansible"]}
    ids = [*(f"id-{number}" for number in range(7)), *(server["id"] for server in servers_of_stacks)]
    site.store.write(lambda tx: [servers.change(tx, id, policy=policy) for id in ids])

    def count_statements(query: str, size: int) -> int:
        def ask() -> None:
            listed = site.call("GET", f"/servers?{query}")["servers"]
            assert len([server for server in listed if server["denial"]]) == size

        ask()
        return site.counted(ask)

    one = count_statements(f"group=script&limit=1&marker={ids[7]}", 1)
    assert count_statements("group=script", 9) == one - 1  # without the query for the marker


@pytest.fixture
def parts(monkeypatch) -> list[list[tuple[Any, Any]]]:
    """Lists are read in parts of two rows, which this list then has."""
    reply: Any = pages.reply
    parts: list[list[tuple[Any, Any]]] = []

    def reply_in_parts(request: Any, tx: Any, name: str, read: pages.Read, **options: Any) -> Any:
        def record(*arguments: Any) -> list[tuple[Any, Any]]:
            parts.append(read(*arguments))
            return parts[-1]

        return reply(request, tx, name, record, **{**options, "first": 2})

    monkeypatch.setattr(pages, "reply", reply_in_parts)
    monkeypatch.setattr(pages, "LARGE", 1)
    monkeypatch.setattr(pages, "_MOST", 2)
    monkeypatch.setattr(server_lists, "_FIRST", 1)
    return parts


@pytest.mark.parametrize("query", ["", "?selector=not%20tier=db"])
def test_a_long_list_is_read_in_parts(site, parts, query):
    assert names(site, f"/servers{query}") == ("01356" if query else "0123456")
    assert len(parts) > 2


def test_a_sorted_list_goes_on_after_servers_that_are_deleted_meanwhile(site, parts, monkeypatch):
    sort_ids = server_lists.sort_ids
    monkeypatch.setattr(server_lists, "sort_ids", lambda *args: [*sort_ids(*args)[:3], "gone", *sort_ids(*args)[3:]])
    assert names(site, "/servers?sort=name") == "0123456"
    assert len(parts) > 2
