from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator

import pytest

from stoker.store.open import Store
from support import databases
from support.stacks import World, world


@pytest.fixture(scope="module")
def fresh(sqlite_template, tmp_path_factory) -> Iterator[Callable[..., World]]:
    """A new world each time it is called: an example must not see the one before."""
    folder = tmp_path_factory.mktemp("laws")
    opened: list[Store] = []
    numbers = itertools.count()

    def make(steps: int = 500) -> World:
        path = folder / f"{next(numbers)}.db"
        shutil.copy(sqlite_template, path)
        while len(opened) > 2:  # an example has two worlds at most
            opened.pop(0).close()
        opened.append(Store(f"sqlite:///{path}", keys=databases.keys))
        return world(opened[-1], steps=steps)

    yield make
    for store in opened:
        store.close()
