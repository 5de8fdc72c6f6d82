from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.agent_protocol import SpokenAgent, spoken_agent
from support.server import Served, served_on


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory) -> Iterator[Served]:
    with served_on(request, tmp_path_factory.mktemp("agent-face")) as running:
        yield running


@pytest.fixture
def agent(stoker) -> SpokenAgent:
    """A server of the test's own."""
    return spoken_agent(stoker)
