from __future__ import annotations

from collections.abc import Iterator

import pytest

from stoker.store.open import Store
from support import databases


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    return databases.sqlite_template(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def postgresql_server() -> str:
    server = databases.postgresql_server()
    databases.prepare_template(server)
    return server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path, sqlite_template) -> Iterator[str]:
    """URL of a fresh migrated database, on each kind."""
    if request.param == "sqlite":
        yield databases.sqlite_url(tmp_path, sqlite_template)
    else:
        with databases.postgresql_url(request.getfixturevalue("postgresql_server")) as url:
            yield url


@pytest.fixture
def store(database_url) -> Iterator[Store]:
    opened = Store(database_url)
    yield opened
    opened.close()
