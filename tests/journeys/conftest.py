from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.agents import OwnAgent, enrolled_agent
from support.server import LOCAL_SERVERS, Served, served


@pytest.fixture
def stoker(tmp_path, database_url) -> Iterator[Served]:
    """A Stoker with local servers, on each kind of database."""
    with served(tmp_path, LOCAL_SERVERS, database=database_url) as running:
        yield running


@pytest.fixture
def agent(stoker, tmp_path) -> Iterator[OwnAgent]:
    """The agent of the enrolled server ``web1``."""
    with enrolled_agent(tmp_path / "agent", stoker, "web1") as running:
        yield running
