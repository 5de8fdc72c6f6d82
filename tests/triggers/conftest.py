from __future__ import annotations

from pathlib import Path

import pytest

from support.fleet import Fleet
from support.stacks import World, world
from support.tools import ANSIBLE


@pytest.fixture
def heat(store) -> World:
    return world(store)


@pytest.fixture
def fleet(heat) -> Fleet:
    return Fleet(heat)


@pytest.fixture(scope="session")
def ansible_playbook() -> Path:
    """The program of the installed ansible-core."""
    return ANSIBLE.require() / "bin" / "ansible-playbook"
