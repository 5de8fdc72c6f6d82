"""Paginated lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from stoker_client.parts import part

if TYPE_CHECKING:
    from stoker_client.wire import Wire

PAGE = 200


def read_pages(
    wire: Wire, path: str, key: str, query: Mapping[str, Any], limit: int | None = None, *, id_key: str = "id"
) -> list[Any]:
    """Return the first ``limit`` entries of the list under ``key``, or all. ``id_key`` is the key of their ids."""
    size = PAGE if limit is None else min(limit, PAGE)
    return list(islice(iterate_pages(wire, path, key, query, size, id_key=id_key), limit))


def iterate_pages(
    wire: Wire, path: str, key: str, query: Mapping[str, Any], size: int, *, id_key: str = "id"
) -> Iterator[Any]:
    """Yield all entries of the list under ``key``, which is read in pages of ``size`` entries."""
    marker = None
    while True:
        page = part(wire.get(path, {**query, "limit": size, "marker": marker}), key)
        yield from page
        if len(page) < size:
            return
        marker = page[-1][id_key]
