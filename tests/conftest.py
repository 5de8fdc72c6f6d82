from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.store.open import Store
from support import databases

#: Whole programs, real clients and long searches: `make test` has them, `make test-fast` does without.
SLOW = (
    "journeys/",
    "interop/",
    "agents/",
    "external/",
    "agent/test_cancel",
    "agent/test_delivery",
    "agent/test_keeping",
    "agent/test_live",
    "agent/test_matrix",
    "agent/test_parallel",
    "agent/test_runs",
    "agent/test_sending",
    "agent/test_signed_queues",
    "agent/test_sources",
    "client/test_run",
    "client/test_software",
    "client/test_stacks",
    "client/test_trigger",
    "client/test_waiting",
    "commands/test_clouds_yaml",
    "commands/test_serve",
    "hot/functions/test_any",
    "hot/test_any",
    "http/test_all_rows",
    "http/test_bad_input",
    "http/test_by_schema",
    "http/test_described",
    "http/test_fuzz",
    "http_agent/",
    "http_cfn/test_fuzz",
    "http_messaging/",
    "http_objects/",
    "identity/test_keystone",
    "identity/test_stack_users",
    "resources/test_any",
    "resources/test_odd",
    "resources/test_user_data",
    "servers/test_local",
    "stacks/test_laws",
    "triggers/test_faces",
    "triggers/test_together",
    "work/test_contract",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes its time is marked here, so that `make test-fast` stays under a minute: it runs on SQLite alone."""
    root = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(root).as_posix() if item.path.is_relative_to(root) else ""
        if place.startswith(SLOW) or "postgresql" in item.name:
            item.add_marker(pytest.mark.slow)


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
