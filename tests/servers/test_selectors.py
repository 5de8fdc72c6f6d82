"""Selectors: their grammar, their errors, and the servers that they select."""

from __future__ import annotations

import pytest

from stoker.model.errors import Invalid
from stoker.model.selectors import DEEPEST, LONGEST, MOST, Selectable, Selector, join, parse, select
from stoker.servers import enrollment
from stoker.servers.presence import store_facts
from stoker.store import server_lists, servers

SERVER = Selectable(
    {"role": "web", "example.com/tier": "front", "empty": "", "os": "mine"},
    {
        "os": {"id": "ubuntu", "family": "debian", "version": "24.04"},
        "kernel": "6.1.0-13-amd64",
        "arch": "x86_64",
        "memory_mb": 8000,
        "hooks": ["ansible", "script"],
        "networks": {"eth0.100": ["10.0.0.5", "fd00::5"]},
        "tools": {"docker": "28.2.2", "puppet": ""},
        "custom": {"site.eu": {"gpu": True, "load": 0.5}, "role": "forged"},
        "labels": {"role": "forged"},
    },
)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("role=web", True),
        (" role = web ", True),
        ("role=db", False),
        ("labels.role=web", True),
        ("labels.example.com/tier=front", True),
        ("fact.labels.role=web", True),
        ("fact.labels.role=forged", False),
        ("labels.gone exists", False),
        ("role!=db", True),
        ("gone!=db", True),
        ("gone=", False),
        ("empty=", True),
        ("empty= , role=web", True),
        ("empty= and role=web", True),
        ("(empty=)", True),
        ("empty!=", False),
        ("role=web,example.com/tier=front", True),
        ("role=web,example.com/tier=back", False),
        ("role=web and os.family=debian and memory_mb>4096", True),
        ("role=db or os.family=debian", True),
        ("role=db and os.family=debian or arch=x86_64", True),
        ("role=db and (os.family=debian or arch=x86_64)", False),
        ("not role=db and not gone exists", True),
        ("not (role=web or role=db)", False),
        ("not not role=web", True),
        ("role in (db, web)", True),
        ("role not in (db, web)", False),
        ("gone not in (db)", True),
        ('role="web"', True),
        ("role='we b'", False),
        ("role~w*", True),
        ("role~'[wv]eb'", True),
        ("role~e", False),
        # numbers and versions
        ("memory_mb=8000", True),
        ("memory_mb=8000.0", True),
        ("memory_mb=08000", True),
        ("memory_mb=8k", False),
        ("memory_mb>=8000", True),
        ("memory_mb<8000", False),
        ("memory_mb>999", True),
        ("memory_mb>-1", True),
        ("memory_mb>7999.5", True),
        ("kernel<6.2", True),
        ("kernel>=6.1", True),
        ("kernel>6.1.0-9", True),
        ("kernel>10", False),
        ("os.version=24.04", True),
        ("os.version>=22.04", True),
        ("os.version<9", False),
        ("tools.docker>=28.10", False),
        ("tools.docker>=9", True),
        ("arch>1", False),
        ("gone>1", False),
        ("tools.puppet>1", False),
        ("custom.site.eu.load<0.6", True),
        # what names mean
        ("os=mine", True),
        ("fact.os.id=ubuntu", True),
        ("fact.os=mine", False),
        ("label.os=mine", True),
        ("label.arch=x86_64", False),
        ("fact.role=web", False),
        ("custom.role=forged", True),
        ("custom.site.eu.gpu=true", True),
        ("tools.puppet exists", True),
        ("tools.chef exists", False),
        ("tools exists", True),
        ("cloud exists", False),
        ("hooks=script", True),
        ("hooks=script and hooks=ansible", True),
        ("hooks!=script", False),
        ("hooks=puppet", False),
        ("networks.eth0.100=10.0.0.5", True),
        ("networks~10.*", True),
        ("networks~192.*", False),
    ],
)
def test_selectors_match(text, matches):
    assert parse(text).matches(SERVER) is matches
    assert parse(f"({text})").matches(SERVER) is matches
    assert parse(f"not ({text})").matches(SERVER) is not matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected a condition, not the end"),
        ("role", "column 5: expected '=', '!=', '<', '<=', '>', '>=', '~', 'in', 'not in' or 'exists', not the end"),
        ("=web", "column 1: expected the name of a label or a fact, not '='"),
        ("role=web,", "column 10: expected the name of a label or a fact, not the end"),
        ("role=web,role=db", "column 10: role cannot have two values at once"),
        ("role=web and (role=db)", "column 14: role cannot have two values at once"),
        ("role=a b", "column 8: expected 'and', 'or' or the end, not 'b'"),
        ("role=ä", "column 6: unexpected 'ä': put the value in quotes"),
        ("role='web", 'column 6: unexpected "\'": the quote does not end'),
        ("(role=web", "column 10: expected ')', not the end"),
        ("role=web)", "column 9: expected 'and', 'or' or the end, not ')'"),
        ("role in web", "column 9: expected '(', not 'web'"),
        ("role in ()", "column 10: expected a value, not ')'"),
        ("role not web", "column 10: expected 'in', not 'web'"),
        ("role<=web", "column 7: expected a number or a version, not 'web'"),
        ("role<", "column 6: expected a value, not the end"),
        ("memory_mb>)", "column 11: expected a value, not ')'"),
        ("and=1", "column 1: expected the name of a label or a fact, not 'and'"),
        ("role==web", "column 6: expected a value, not '='"),
        ("x" * (LONGEST + 1), f"has {LONGEST + 1} characters; it may have {LONGEST}"),
        (",".join(["a=b"] * (MOST + 1)), f"more than {MOST} conditions"),
        ("(" * DEEPEST + "a=b" + ")" * DEEPEST, f"more than {DEEPEST} levels"),
        ("not " * DEEPEST + "a=b", f"more than {DEEPEST} levels"),
    ],
)
def test_errors_name_the_column(text, message):
    with pytest.raises(Invalid) as raised:
        parse(text)
    assert message in raised.value.message
    assert raised.value.message.startswith("the selector")


def test_only_labels_that_every_selected_server_has_are_required():
    def required(text):
        return dict(parse(text).required_labels)

    assert required("role=web, (zone=a and label.os=x), memory_mb>5") == {"role": "web", "zone": "a", "os": "x"}
    assert required("role=web or zone=a") == {}
    assert required("not role=web") == {}
    assert required("role!=web and arch=x86_64 and fact.role=x") == {}
    assert [parse(text).names_facts for text in ("role=web", "label.os=x", "os=x", "fact.y=x")] == [
        *(False, False, True, True),
    ]


def test_selectors_of_requests_are_joined():
    assert select(None, None) is None
    both = select({"role": "web"}, "memory_mb>4096 or arch=arm64")
    assert both.matches(SERVER)
    assert not both.matches(SERVER._replace(labels={}))
    assert not both.matches(SERVER._replace(facts={}))
    assert str(both) == "role=web and (memory_mb>4096 or arch=arm64)"
    joined = join([parse("role=web or role=db"), parse("memory_mb<5 or arch=x86_64")])
    assert joined.matches(SERVER)
    assert not joined.matches(SERVER._replace(labels={"role": "x"}))
    with pytest.raises(Invalid, match="column 5"):
        select(None, "role")


def test_a_server_that_does_not_exist_is_never_selected():
    assert not parse("not role=web").matches(None)
    assert parse("not role=web").matches(Selectable({}, {}))


def test_servers_are_selected_by_labels_and_facts(store):
    ids = {}

    def do(tx):
        for name, labels, facts in (
            ("c", {"tier": "web", "zone": "a"}, {"memory_mb": 100}),
            ("a", {"tier": "web"}, {"memory_mb": 9000}),
            ("b", {"zone": "a"}, {"memory_mb": 9000, "os": {"family": "debian"}}),
            ("d", {}, {}),
        ):
            server = enrollment.enroll(tx, "p", name)[0]
            ids[name] = server.id
            servers.change(tx, server.id, labels=labels)
            if facts:
                store_facts(tx, server.id, facts)
        other = enrollment.enroll(tx, "other", "e")[0]
        servers.change(tx, other.id, labels={"tier": "web", "zone": "a"})
        store_facts(tx, other.id, {"memory_mb": 9000})

    store.write(do)
    with store.read() as tx:

        def names(selector):
            return "".join(server.name for server in server_lists.find_by_selector(tx, "p", selector))

        assert names(Selector(labels={"tier": "web"})) == "ac"
        assert names(Selector(labels={"tier": "web", "zone": "a"})) == "c"
        assert names(Selector(labels={"tier": "we"})) == ""
        assert names(Selector(labels={"tier": "web"}, text="memory_mb>4096")) == "a"
        assert names(parse("tier=web")) == "ac"
        assert names(parse("memory_mb>4096")) == "ab"
        assert names(parse("not tier=web")) == "bd"
        assert names(parse("os.family!=debian")) == "acd"
        assert names(parse("tier=web or os.family=debian")) == "abc"
        (selected,) = server_lists.find_by_selector(tx, "p", parse("zone=a and os.family=debian"))
        assert selected == servers.get(tx, ids["b"], "p")


def test_a_marker_of_another_project_has_no_position(store):
    store.write(lambda tx: [enrollment.enroll(tx, project, "a") for project in "pq"])
    with store.read() as tx:
        [(position, own)], [(_, other)] = (server_lists.page(tx, project, 9) for project in "pq")
        assert server_lists.position(tx, "p", own.id) == position
        assert server_lists.position(tx, "p", other.id) is None


@pytest.mark.parametrize("text", ["tier=web", "not tier=db", "memory_mb>4096", "tier=web and memory_mb>4096"])
def test_a_selection_reads_servers_in_parts_that_grow(store, monkeypatch, text):
    monkeypatch.setattr(server_lists, "_FIRST", 2)
    monkeypatch.setattr(server_lists, "_GROWTH", 2)
    monkeypatch.setattr(server_lists, "_MOST", 5)

    def do(tx):
        for number in range(30):
            server = enrollment.enroll(tx, "p", f"{number:02}")[0]
            servers.change(tx, server.id, labels={"tier": "db" if number % 3 == 0 else "web"})
            store_facts(tx, server.id, {"memory_mb": 1024 if number % 3 == 0 else 8192})

    store.write(do)
    expected = [f"{number:02}" for number in range(30) if number % 3]
    with store.read() as tx:
        selected = list(server_lists.iterate_selected(tx, "p", parse(text)))
        assert sorted(server.name for _, server in selected) == expected
        after = selected[6][0]
        assert list(server_lists.iterate_selected(tx, "p", parse(text), after)) == selected[7:]


@pytest.mark.parametrize("selected", ["", "0", "39", "0 1 2 3", "20 21 22 23 24 25", "0 1 2 3 4 5 6 7 35 39"])
def test_frequent_and_rare_labels_select_the_same_servers_in_the_same_order(store, monkeypatch, selected):
    """The first parts search the next servers, later ones the index on labels, when labels turn out to be rare."""
    monkeypatch.setattr(server_lists, "_FIRST", 2)
    monkeypatch.setattr(server_lists, "_MOST", 3)
    monkeypatch.setattr(server_lists, "_RARE", 3)
    numbers = [int(number) for number in selected.split()]

    def add(tx):
        for number in range(40):
            server = enrollment.enroll(tx, "p", f"{number:02}")[0]
            servers.change(tx, server.id, labels={"tier": "web" if number in numbers else "db", "zone": "a"})

    store.write(add)
    with store.read() as tx:
        every = [position for position, _ in server_lists.page(tx, "p", 100)]
        found = list(server_lists.iterate_selected(tx, "p", Selector(labels={"tier": "web"})))
        assert sorted(int(server.name) for _, server in found) == numbers
        assert [position for position, _ in found] == [place for place in every if place in {at for at, _ in found}]
        for place, (after, _) in enumerate(found):
            rest = server_lists.iterate_selected(tx, "p", Selector(labels={"tier": "web"}), after)
            assert list(rest) == found[place + 1 :]
