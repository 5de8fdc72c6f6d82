"""Labels: their syntax, and servers chosen by them."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.model import labels
from stoker.model.errors import Invalid
from stoker.servers import enrollment
from stoker.store import servers


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"a": ""},
        {"tier": "web", "example.com/tier": "web-1.2_3"},
        {"k" * 63: "v" * 63},
        {"d" * 253 + "/k": "v"},
    ],
)
def test_valid_labels_are_accepted(said: dict[str, str]) -> None:
    assert labels.check_labels(said) == said


@pytest.mark.parametrize(
    "said",
    [
        None,
        ["a"],
        {"": "v"},
        {"k" * 64: "v"},
        {"-k": "v"},
        {"k-": "v"},
        {"/k": "v"},
        {"a/b/c": "v"},
        {"UPPER.example/k": "v"},
        {"d" * 254 + "/k": "v"},
        {"ä": "v"},
        {"k\n": "v"},
        {1: "v"},
        {"k": 1},
        {"k": None},
        {"k": "v" * 64},
        {"k": "a b"},
        {"k": '"'},
        {"k": "v\n"},
        {f"k{n}": "v" for n in range(labels.MOST + 1)},
    ],
)
def test_invalid_labels_are_refused(said: Any) -> None:
    with pytest.raises(Invalid, match=r"^labels"):
        labels.check_labels(said)


def test_changes_add_replace_and_remove_labels() -> None:
    assert labels.apply_changes({"a": "1", "b": "2"}, {"b": None, "a": "3", "c": "4", "gone": None}) == {
        "a": "3",
        "c": "4",
    }


def test_selectors_are_parsed() -> None:
    assert labels.selector("tier=web, zone=a") == {"tier": "web", "zone": "a"}
    for wrong in ("", "tier", "=web", "tier=web,", "tier=web,tier=db"):
        with pytest.raises(Invalid, match="labels"):
            labels.selector(wrong)


def test_servers_with_all_labels_are_selected(store) -> None:
    def do(tx):
        for name, has in (("c", {"tier": "web", "zone": "a"}), ("a", {"tier": "web"}), ("b", {"zone": "a"}), ("d", {})):
            servers.set_labels(tx, enrollment.enroll(tx, "p", name)[0].id, has)
        servers.set_labels(tx, enrollment.enroll(tx, "other", "e")[0].id, {"tier": "web", "zone": "a"})

    store.write(do)
    with store.read() as tx:
        assert [each.name for each in servers.find_by_labels(tx, "p", {"tier": "web"})] == ["a", "c"]
        assert [each.name for each in servers.find_by_labels(tx, "p", {"tier": "web", "zone": "a"})] == ["c"]
        assert servers.find_by_labels(tx, "p", {"tier": "we"}) == []
        assert servers.find_by_labels(tx, "p", {}) == []
        assert servers.find_by_labels(tx, "p", {"tier": "web"})[0].labels == {"tier": "web"}
