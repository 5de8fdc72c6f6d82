"""The dictionary for keys, tokens and the like."""

from __future__ import annotations

from stoker.bounded_dict import BoundedDict


def test_a_full_dictionary_forgets_only_what_was_put_first():
    entries = BoundedDict(3)
    for key in "abca":
        entries.put(key, key.upper())
    entries.put("d", "D")
    assert [entries.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    entries.drop("a")
    entries.drop("never added")
    assert entries.get("a") is None
    entries.clear()
    assert entries.get("c") is None
