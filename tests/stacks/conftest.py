from __future__ import annotations

import pytest

from support.fleet import Fleet
from support.stacks import World, world


@pytest.fixture
def heat(store) -> World:
    return world(store)


@pytest.fixture
def fleet(heat: World) -> Fleet:
    return Fleet(heat)
