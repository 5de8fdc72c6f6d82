from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.service_processes import Peer


@pytest.fixture(scope="session")
def swift(tmp_path_factory, start_swift) -> Iterator[Peer]:
    with start_swift(tmp_path_factory.mktemp("swift") / "it") as running:
        yield running


@pytest.fixture(scope="session")
def zaqar(tmp_path_factory, start_zaqar) -> Iterator[Peer]:
    with start_zaqar(tmp_path_factory.mktemp("zaqar")) as running:
        yield running
