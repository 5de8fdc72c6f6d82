"""One Stoker for what asks without leaving anything behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import Served, served


@pytest.fixture(scope="session")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http")) as running:
        yield running
