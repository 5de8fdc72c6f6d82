"""A small true server of the agents' protocol, and agents that are processes of their own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker_agent import backoff
from support.agents import AGENT_PYTHON, OwnAgent
from support.http_stub import Answering, Asked, Said
from support.install_line import Machine

#: What never comes is a failure; nothing is measured by it.
_PATIENCE_SECONDS = 60.0
#: The key of the server that agents are.
KEY = "s1.secret"
#: Holds a script until ``Agent.release``.
HOLD = "until test -e $WORK/go; do sleep 0.02; done"


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries follow almost at once."""
    monkeypatch.setattr(backoff, "SHORTEST", 0.01)


class Server:
    """What it was told is in public lists; what it shall do wrong is set on it, by the last word of the path."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.deployments: list[Any] = []
        #: What documents say besides.
        self.head: dict[str, Any] = {}
        self.revision = 0
        self.signals: list[tuple[str, dict[str, Any]]] = []
        self.progress: list[tuple[str, dict[str, Any]]] = []
        self.facts: list[dict[str, Any]] = []
        self.logs: dict[tuple[str, str], bytes] = {}
        self.log_calls: list[tuple[str, str, int]] = []
        self.polls: list[str] = []
        self.files: dict[str, bytes] = {}
        #: ETags of files whose ETag is not the SHA-256 of their content.
        self.etags: dict[str, str] = {}
        #: How many of the next calls are answered with what, or taken and never answered, or held.
        self.answers: dict[str, list[int]] = {}
        self.lost: Counter[str] = Counter()
        self.released = {name: threading.Event() for name in ("signal", "logs")}
        for each in self.released.values():
            each.set()
        self.withdraws_reported = True
        #: ETags of documents in which only reported runs have ended: an open poll is not answered for them.
        self._known: set[str] = set()
        self._port = 0
        self.come_back()

    @property
    def url(self) -> str:
        return self._http.url

    def come_back(self) -> None:
        self._http = Answering(self.decide, port=self._port)
        self._port = self._http.port

    def vanish(self) -> None:
        self._http.close()
        with self.changed:
            self.changed.notify_all()
        assert self._http.errors == []

    def give(self, *entries: Any) -> None:
        """A new document."""
        with self.changed:
            self.deployments = list(entries)
            self.revision += 1
            self.changed.notify_all()

    def until(self, holds: Callable[[], Any]) -> Any:
        """What ``holds`` says as soon as that is true of something; also of things outside of this server."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            with self.changed:
                if found := holds():
                    return found
                assert time.monotonic() < until, "what was waited for never came"
                self.changed.wait(0.02)

    def result(self, id: str) -> dict[str, Any]:
        """The first report of this run, waited for."""
        found: dict[str, Any] = self.until(lambda: self.results(id))[0]
        return found

    def results(self, id: str) -> list[dict[str, Any]]:
        return [values for each, values in self.signals if each == id]

    def change(self, **how: Any) -> None:
        """A new document: all entries as before, but for these keys."""
        self.give(*({**each, **how} for each in self.deployments))

    @staticmethod
    def entry(
        id: str,
        config: Any,
        *,
        group: str = "script",
        outputs: Any = (),
        options: dict[str, Any] | None = None,
        **inputs: Any,
    ) -> dict[str, Any]:
        kinds = {str: "String", bool: "Boolean", int: "Number", float: "Number"}
        return {
            "id": id,
            "name": f"name-{id}",
            "group": group,
            "creation_time": "2026-01-01T00:00:00Z",
            "config": config,
            "inputs": [
                {"name": name, "type": kinds.get(type(value), "Json"), "value": value} for name, value in inputs.items()
            ],
            "outputs": [{"name": name, "type": "String", "error_output": False} for name in outputs],
            "options": options or {},
            "deployment_id": f"d-{id}",
        }

    # What the handler asks for, with the condition held.

    def document(self) -> bytes:
        said = {"server_id": "s1", "revision": self.revision, "poll_wait": 50, "deployments": self.deployments}
        said |= self.head
        return json.dumps(said).encode()

    def take_log(self, id: str, stream: str, offset: int, data: bytes, gap: bool = False) -> int:
        """What never comes is stars."""
        self.log_calls.append((id, stream, offset))
        known = self.logs.get((id, stream), b"")
        if gap:
            known = known.ljust(offset, b"*")
        if offset <= len(known):
            known += data[len(known) - offset :]
        self.logs[id, stream] = known
        return len(known)

    def take_signal(self, id: str, body: bytes) -> None:
        values = json.loads(body)
        self.signals.append((id, values))
        if self.withdraws_reported:
            self.deployments = [each for each in self.deployments if not _is(each, id)]
            self.revision += 1
            self._known.add(_etag(self.document()))

    # How it answers.

    def decide(self, asked: Asked) -> Said:
        words = asked.path.strip("/").split("/")
        kind = words[-1]
        with self.changed:
            said = self._choose(kind, words, asked)
            is_lost = self.lost[kind] > 0
            self.lost[kind] -= is_lost
            self.changed.notify_all()
        if kind in self.released:
            self.released[kind].wait(_PATIENCE_SECONDS)
        return Said(lost=True) if is_lost else said

    def _choose(self, kind: str, words: list[str], asked: Asked) -> Said:
        if kind in self.files:
            etag = self.etags.get(kind) or f'"{hashlib.sha256(self.files[kind]).hexdigest()}"'
            return Said(304 if asked.headers.get("if-none-match") == etag else 200, self.files[kind], {"ETag": etag})
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            return _error(401, "the key is unknown")
        if self.answers.get(kind):
            return _error(self.answers[kind].pop(0), "told to")
        if kind == "approval":  # the self-test of a new program asks for it
            return Said(200, {"status": "APPROVED"})
        if kind == "document":
            return self._poll(asked)
        if kind == "facts":
            self.facts.append(asked.json)
            return Said(204)
        return self._report(words[-2], kind, asked)

    def _poll(self, asked: Asked) -> Said:
        known, serving = asked.headers.get("if-none-match"), self._http
        self.polls.append(asked.headers.get("x-stoker-agent", ""))
        is_late = known != _etag(self.document())
        self.changed.wait_for(
            lambda: is_late or _etag(self.document()) not in {known, *self._known} or serving is not self._http,
            float(asked.query["wait"]),
        )
        etag = _etag(self.document())
        return Said(304 if known == etag else 200, self.document(), {"ETag": etag})

    def _report(self, id: str, kind: str, asked: Asked) -> Said:
        if kind == "signal":
            self.take_signal(id, asked.body)
            return Said(200, {"status": "COMPLETE"})
        if kind == "progress":
            self.progress.append((id, asked.json))
            return Said(204)
        if kind == "logs":
            assert len(asked.body) <= 256 * 1024
            more = {"gap": True} if "gap" in asked.query else {}
            offset = self.take_log(id, asked.query["stream"], int(asked.query["offset"]), asked.body, **more)
            return Said(200, {"offset": offset})
        return _error(404, "no such path")


def _is(entry: Any, id: str) -> bool:
    return isinstance(entry, dict) and entry.get("id") == id


def _error(status: int, message: str) -> Said:
    return Said(status, {"error": {"message": message}})


def _etag(document: bytes) -> str:
    return f'"{hashlib.sha256(document).hexdigest()[:16]}"'


def shortened(times: dict[str, float]) -> tuple[str, ...]:
    """Return the program of an agent with shorter times, such as ``{"live._HEARTBEAT_SECONDS": 0.3}``."""
    lines = ["import importlib", "from stoker_agent.__main__ import main"]
    for name, seconds in times.items():
        module, constant = name.rsplit(".", 1)
        lines += [
            f"module = importlib.import_module('stoker_agent.{module}')",
            f"assert module.{constant} > {seconds}",  # fails if the constant gets another name
            f"module.{constant} = {seconds}",
        ]
    return ("-c", "\n".join([*lines, "main()"]))


class Agent(OwnAgent):
    """The agent of ``server``, whose processes are found by a variable of their environment."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._mark = f"TEST_FOLDER={folder}"
        super().__init__(
            folder,
            environment={"TEST_FOLDER": str(folder), "WORK": str(folder / "work")},
            run_variables=[self._mark],
        )
        self.server = server
        self.work.mkdir()
        self.configure()

    def configure(self, key: str = KEY) -> None:
        config = self.root / "etc" / "agent.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps({"url": self.server.url, "server_id": "s1", "key": key}))

    def begin(self, *entries: Any, **how: Any) -> None:
        """Give these entries to the agent, which is started unless it runs."""
        self.server.give(*entries)
        if self.process is None or self.process.poll() is not None:
            self.start(**how)

    def run(self, *entries: Any, **how: Any) -> dict[str, Any]:
        """Give these entries to the agent, and return the report of the last one."""
        self.begin(*entries, **how)
        return self.server.result(entries[-1]["id"])

    def await_acknowledged(self, id: str) -> None:
        """Wait until the agent knows that the server has its report."""
        self.server.until(self.run_folder(id).joinpath("acknowledged").exists)

    def call(self, *words: str, input: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Another process of the program, to its end."""
        return subprocess.run(
            [AGENT_PYTHON, "-m", "stoker_agent", *words],
            env={**self.variables, **environment},
            input=input,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )

    def release(self) -> None:
        """Let the scripts go on that HOLD holds."""
        self.work.joinpath("go").touch()

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def run_folder(self, id: str) -> Path:
        return self.root / "state" / "runs" / id

    def hook(self, name: str, text: str) -> None:
        path = self.root / "hooks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def living(self) -> list[int]:
        """All processes that this agent ever started, itself too."""
        return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and self._started(each)]

    def _started(self, process: Path) -> bool:
        try:
            return self._mark.encode() in process.joinpath("environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def end_all(self) -> None:
        while found := self.living():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self.process is not None:
                self.process.poll()
            time.sleep(0.01)
        if self.process is not None:
            self.process.wait(_PATIENCE_SECONDS)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    for each in made.released.values():
        each.set()
    made.vanish()


@pytest.fixture
def other() -> Iterator[Server]:
    """One more, for agents that know several."""
    made = Server()
    yield made
    made.vanish()


@pytest.fixture
def agent(tmp_path, server) -> Iterator[Agent]:
    made = Agent(tmp_path, server)
    yield made
    made.end_all()
    if made.folder.joinpath("agent.log").exists():
        print(made.log)  # shown of a test that failed


@pytest.fixture
def machines(tmp_path) -> Iterator[Callable[[str], Machine]]:
    """Makes machines for install lines, by name."""
    made: list[Machine] = []

    def make(name: str) -> Machine:
        made.append(Machine(tmp_path / name))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def machine(machines) -> Machine:
    return machines("machine")
