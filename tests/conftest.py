from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from stoker.store.open import Store
from support import databases, installations, keystone, service_processes, upstream
from support.install_peers import INSTALLATIONS
from support.service_processes import Peer

StartPeer = Callable[..., AbstractContextManager[Peer]]

#: Processes that tests start find compiled modules, whatever the environment says: compiling takes half of their start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

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
    "security/",
    "servers/test_local",
    "stacks/test_laws",
    "stacks/test_lifecycle",
    "triggers/test_faces",
    "triggers/test_together",
    "work/test_contract",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-fast` does not even import slow modules: that took a third of its time."""
    return True if config.option.markexpr == "not slow" and _is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes its time is marked here, so that `make test-fast` stays under a minute: it runs on SQLite alone."""
    for item in items:
        if _is_slow(item.path) or "postgresql" in item.name:
            item.add_marker(pytest.mark.slow)


def _is_slow(path: Path) -> bool:
    root = Path(__file__).parent
    return path.is_relative_to(root) and path.relative_to(root).as_posix().startswith(SLOW)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Installs the releases that `make peers` has not installed, here because the tests' time is limited."""
    if not session.config.option.collectonly:
        names = {name for item in session.items for name in getattr(item, "fixturenames", ())}
        installations.install_for(names, INSTALLATIONS)


@pytest.fixture(scope="session")
def start_keystone() -> Callable[[Path], AbstractContextManager[keystone.Keystone]]:
    return partial(keystone.keystone, keystone.KEYSTONE.require())


@pytest.fixture(scope="session")
def start_swift() -> StartPeer:
    return partial(service_processes.swift, service_processes.SWIFT.require() / "bin")


@pytest.fixture(scope="session")
def start_zaqar(redis_program) -> StartPeer:
    return partial(service_processes.zaqar, service_processes.ZAQAR.require() / "bin", redis_program)


@pytest.fixture(scope="session")
def start_old_zaqar(redis_program) -> StartPeer:
    return partial(service_processes.zaqar, service_processes.OLD_ZAQAR.require() / "bin", redis_program)


@pytest.fixture(scope="session")
def redis_program() -> str:
    return service_processes.find_redis()


@pytest.fixture(scope="session")
def heat_agents() -> Path:
    """The unpacked release of heat-agents."""
    return upstream.HEAT_AGENTS.require() / "heat-agents"


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
    opened = Store(database_url, keys=databases.keys)
    yield opened
    opened.close()
