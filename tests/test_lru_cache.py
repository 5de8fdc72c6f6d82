"""The cache for keys, tokens and the like."""

from __future__ import annotations

import time

from stoker.lru_cache import LruCache


def test_a_full_cache_forgets_only_what_was_not_used_for_longest():
    cache = LruCache(3)
    for key in "abc":
        cache.put(key, key.upper())
    assert cache.get("a") == "A"
    cache.put("d", "D")
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    cache.drop("a")
    cache.drop("never added")
    assert cache.get("a") is None
    cache.clear()
    assert cache.get("c") is None


def test_an_entry_is_forgotten_at_the_end_of_its_validity(monkeypatch):
    cache = LruCache(3)
    cache.put("a", "A", time.monotonic() + 60)
    cache.put("b", "B")
    assert cache.get("a") == "A"
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert (cache.get("a"), cache.get("b")) == (None, "B")
