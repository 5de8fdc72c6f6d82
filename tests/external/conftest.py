from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import peers
from support.peers import Peer


@pytest.fixture(scope="session")
def swift(tmp_path_factory) -> Iterator[Peer]:
    with peers.swift(tmp_path_factory.mktemp("swift") / "it") as running:
        yield running


@pytest.fixture(scope="session")
def zaqar(tmp_path_factory) -> Iterator[Peer]:
    with peers.zaqar(tmp_path_factory.mktemp("zaqar")) as running:
        yield running
