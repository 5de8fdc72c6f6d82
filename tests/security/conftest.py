"""One Stoker for all attacks that a Stoker survives; a test that ends or reconfigures one has its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.accounts import Account, create_account, create_project
from support.server import Served, served


@pytest.fixture(scope="session")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("security"), is_forked=False) as running:
        yield running


@pytest.fixture(scope="session")
def member(stoker) -> Account:
    return create_account(stoker, "member")


@pytest.fixture(scope="session")
def reader(stoker) -> Account:
    return create_account(stoker, "reader")


@pytest.fixture(scope="session")
def stranger(stoker) -> Account:
    """A member of another project."""
    return create_account(stoker, "member", project=create_project(stoker))
