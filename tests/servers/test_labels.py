"""Labels: their syntax."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.model import server
from stoker.model.errors import Invalid


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
    assert server.check_labels(said) == said


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
        {f"k{n}": "v" for n in range(server.MOST_LABELS + 1)},
    ],
)
def test_invalid_labels_are_refused(said: Any) -> None:
    with pytest.raises(Invalid, match=r"^labels"):
        server.check_labels(said)


def test_changes_add_replace_and_remove_labels() -> None:
    assert server.change_labels({"a": "1", "b": "2"}, {"b": None, "a": "3", "c": "4", "gone": None}) == {
        "a": "3",
        "c": "4",
    }
