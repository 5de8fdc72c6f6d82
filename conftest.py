"""What all tests share, those of plug-ins, too."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from zlib import crc32

import pytest

from stoker.store.open import Store
from support import cheap_hashes, databases, installations, keystone, search, service_processes, upstream
from support.install_peers import INSTALLATIONS
from support.machine_bases import AUTOMATION, CATALOG, CLOUD, CONTAINERS, RPM, SUDO
from support.machines import Machines
from support.service_processes import Peer
from support.tools import IMAGE_BUILDER

pytest_plugins = ["support.console", "support.cpu_times", "support.skipped_tests"]

#: Until all tests are collected: a quarter of the collection's time was spent in searching new modules for garbage.
gc.disable()

StartPeer = Callable[..., AbstractContextManager[Peer]]

#: Processes that tests start find compiled modules, whatever the environment says: compiling takes half of their start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A shell that starts the tests in the background lets them ignore SIGINT, and so the programs that they start. A signal
# with a handler has its default action in these.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
cheap_hashes.apply()
search.load_profile()

#: Folders whose tests all start whole programs or real clients. Such a module elsewhere has the mark of `_MARK`.
SLOW_FOLDERS = (
    "backends",
    "cloud",
    "console",
    "http_agent",
    "http_cfn",
    "http_messaging",
    "http_objects",
    "interop",
    "journeys",
    "machines",
    "security",
)
#: The folders of tests: of the project, and of each plug-in.
_FOLDERS = [Path(__file__).parent / "tests", *Path(__file__).parent.glob("plugins/*/tests")]
_MARK = re.compile(r"^pytestmark = pytest\.mark\.slow$", re.MULTILINE)
#: What starts other programs; `make test-fast` runs on SQLite alone.
_SLOW_FIXTURES = {
    "machines",
    "postgresql_server",
    "redis_program",
    "start_keystone",
    "start_old_zaqar",
    "start_swift",
    "start_zaqar",
}


#: Tests that run on both kinds of database in any case, because they are about SQL, locks or what a crash leaves.
_ON_BOTH = (
    "tests/store/",
    "tests/work/",
    "tests/http/test_pages.py",
    "tests/http/test_server_lists.py",
    "tests/http/test_statements.py",
    "tests/http_messaging/test_concurrency.py",
    "tests/journeys/test_random_operations.py",
    "tests/servers/test_redemption.py",
    "tests/servers/test_selectors.py",
    "tests/stacks/test_laws",
    "tests/stacks/test_lifecycle_laws.py",
    "tests/triggers/test_concurrency.py",
    "tests/triggers/test_reports_together.py",
)
#: With the value ``both``, every test of the whole suite runs on both kinds of database: `make nightly`.
_DATABASES = "STOKER_TEST_DATABASES"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import slow modules for `make test-fast`, because the imports take a third of its time."""
    return True if config.option.markexpr == "not slow" and _is_slow(collection_path) else None


def _is_whole_suite(config: pytest.Config) -> bool:
    return config.args == config.getini("testpaths")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _is_whole_suite(config) and config.option.markexpr != "not slow" and os.environ.get(_DATABASES) != "both":
        chosen = _choose_databases(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    for item in items:
        uses_program = not _SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
        if uses_program or "postgresql" in item.name or _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


def _choose_databases(items: list[pytest.Item]) -> set[pytest.Item]:
    """
    Return the items that run: of two that differ in the kind of database only, one, the same in each run.

    Both run if the test is in ``_ON_BOTH``.
    """
    chosen, twins = set[pytest.Item](), defaultdict[str, dict[str, pytest.Item]](dict)
    for item in items:
        kind = item.callspec.params.get("database_url") if hasattr(item, "callspec") else None
        if kind is None or item.nodeid.startswith(_ON_BOTH):
            chosen.add(item)
        else:
            twins[item.nodeid.replace(kind, "")][kind] = item
    for name, by_kind in twins.items():
        chosen.add(sorted(by_kind.items())[crc32(name.encode()) % len(by_kind)][1])
    return chosen


@cache
def _is_slow(path: Path) -> bool:
    root = next((folder for folder in _FOLDERS if path.is_relative_to(folder)), None)
    if root is None or path == root:
        return False
    if path.relative_to(root).parts[0] in SLOW_FOLDERS:
        return True
    return path.suffix == ".py" and _MARK.search(path.read_text()) is not None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Installs the releases that `make peers` has not installed, here because the tests' time is limited."""
    gc.enable()
    if not session.config.option.collectonly:
        gc.collect()
        gc.freeze()  # modules and tests live until the end, and a tenth of the time was spent in searching them
        names = {name for item in session.items for name in getattr(item, "fixturenames", ())}
        installations.install_all(INSTALLATIONS[name] for name in sorted(INSTALLATIONS.keys() & names))


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
def machines() -> Iterator[Machines]:
    """Test machines with their own root file systems and addresses; without root or mmdebstrap, skips the test."""
    with Machines.open() as opened:
        yield opened


#: Root file systems for machines, with what ``support.machine_bases`` says.
automation_base, catalog_base, cloud_base, container_base, rpm_base, sudo_base = (
    pytest.fixture(lambda base=base: base, scope="session")
    for base in (AUTOMATION, CATALOG, CLOUD, CONTAINERS, RPM, SUDO)
)


@pytest.fixture(scope="session")
def image_builder() -> Path:
    """The folder with diskimage-builder, for machines."""
    return IMAGE_BUILDER.require()


@pytest.fixture(scope="session")
def sqlite_template() -> Path:
    return databases.sqlite_template()


@pytest.fixture(scope="session")
def postgresql_server() -> str:
    server = databases.postgresql_server()
    databases.prepare_template(server)
    return server


@pytest.fixture(params=databases.KINDS)
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


@pytest.fixture
def heat(store):
    """A complete engine without HTTP."""
    from support.stacks import world  # the imports of a whole service, which other tests do without

    return world(store)


@pytest.fixture
def fleet(heat):
    """Servers and triggers in the engine of ``heat``."""
    from support.fleet import Fleet

    return Fleet(heat)


@pytest.fixture
def clock(monkeypatch):
    """The time of all stores, which the test moves: noon on 2026-05-01."""
    from support.clock import Clock

    return Clock(datetime(2026, 5, 1, 12, tzinfo=UTC), monkeypatch)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of asynchronous tests."""
    return "asyncio"


@pytest.fixture
def site(tmp_path, store):
    """The complete program in the test's process."""
    from support.in_process import Inside

    inside = Inside(tmp_path, store)
    yield inside
    inside.close()


@pytest.fixture(scope="module")
def stoker(request, tmp_path_factory):
    """A served Stoker for the module, on SQLite, with the options in the module's ``SERVE``."""
    from support.server import served

    with served(tmp_path_factory.mktemp("stoker"), *getattr(request.module, "SERVE", ())) as running:
        yield running
