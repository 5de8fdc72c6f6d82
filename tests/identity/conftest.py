"""One Keystone for all tests that need a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.keystone import Keystone


@pytest.fixture(scope="session")
def keystone(tmp_path_factory, start_keystone) -> Iterator[Keystone]:
    with start_keystone(tmp_path_factory.mktemp("keystone")) as running:
        yield running
