"""The service that the client's tests talk to, and ways to call the program."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openstack.config  # noqa: F401 — works out folders when imported: not those of the first test
import pytest
from rich.console import Console

from client.site import Service, Site, recorded_service
from stoker_client.cli._live import Drawn
from stoker_client.cli.main import main
from stoker_client.client import Client, connect
from support.http_stub import Answering

SOURCE = Path(__file__).parents[2] / "client" / "src"


@dataclass
class Result:
    """What a call of the program left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What it printed as JSON. The call must have succeeded."""
        assert self.code == 0, self.err
        return json.loads(self.out)


Stoker = Callable[..., Result]


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A place without any cloud: no OS_*, no clouds.yaml, an empty home."""
    for name in list(os.environ):
        if name.startswith(("OS_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    # openstacksdk works out the user's folders when it is first imported, so the home above comes too late for it.
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Answering]]:
    with recorded_service(tmp_path_factory.mktemp("client")) as running:
        yield running


@pytest.fixture
def site(service: tuple[Service, Answering], nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A new project at the real service, chosen by OS_*."""
    site = Site(*service)
    for name, value in site.variables.items():
        monkeypatch.setenv(name, value)
    yield site
    site.close()


@pytest.fixture
def use_admin(site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the administrator of the site the user of the next commands."""

    def use() -> None:
        monkeypatch.delenv("OS_PROJECT_ID")
        for name, value in site.stoker.environment.items():
            if name.startswith("OS_"):
                monkeypatch.setenv(name, value)

    return use


@pytest.fixture
def client(site: Site) -> Iterator[Client]:
    with connect() as connected:
        yield connected


@pytest.fixture
def stoker(capsys: pytest.CaptureFixture[str], nowhere: Path) -> Stoker:
    """Calls the program in this process."""

    def call(*args: str) -> Result:
        code = main(args)
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@dataclass
class Screen:
    """What a call of the program shows on a terminal."""

    process: subprocess.Popen[bytes]
    _terminal: int
    _shown: bytes = b""

    def read_until(self, words: bytes) -> None:
        """Wait until the program has shown ``words``."""
        while words not in self._shown:
            self._shown += os.read(self._terminal, 4096)

    def read_all(self) -> str:
        """Return everything, without colors, when the program has closed the terminal."""
        try:
            while piece := os.read(self._terminal, 4096):
                self._shown += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        return re.sub(r"\x1b\[[0-9;]*m", "", self._shown.decode(errors="replace"))


@contextmanager
def on_terminal(*args: str) -> Iterator[Screen]:
    """Call the program with a terminal for standard error."""
    main_end, program_end = os.openpty()
    command = [sys.executable, "-m", "stoker_client.cli.main", *args]
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=program_end, env=env
    ) as process:
        os.close(program_end)
        yield Screen(process, main_end)
        os.close(main_end)


@pytest.fixture
def console() -> Console:
    """What a live view is drawn on."""
    return Console(file=io.StringIO(), width=100, height=20)


def drawn(view: Drawn, console: Console) -> list[str]:
    """Return the lines of a live view."""
    with console.capture() as capture:
        console.print(view.render())
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the program, or any Python, as a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        env = {**os.environ, "PYTHONPATH": str(SOURCE)}
        process = subprocess.Popen(
            [sys.executable, *args], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=env
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
