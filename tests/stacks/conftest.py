from __future__ import annotations

import pytest

from support.stacks import World, world


@pytest.fixture
def heat(store) -> World:
    return world(store)
