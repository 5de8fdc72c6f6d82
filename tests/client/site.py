"""
The real service behind a proxy that records what the client sends, with a project of its own for each test.

A test may replace an answer, for what a real service does seldom: odd bodies, and streams that end early.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers

from support.accounts import PASSWORD, Account, create_account, create_project
from support.agent_protocol import SpokenAgent, deploy, shown, trade
from support.described_api import Described
from support.http_stub import Answering, Asked, Said, forward
from support.ports import free_port
from support.server import Answer, Served, served

#: A template without resources.
EMPTY = "heat_template_version: 2021-04-16\n"
#: What agents say of themselves.
HOOKS = "0.1.0; hooks=script; modes=check,preview"


class Service:
    """
    The service and the proxy. ``answer`` decides about each request before the service does, whose answers are as its
    OpenAPI document describes them.
    """

    def __init__(self, stoker: Served) -> None:
        self.described = Described(stoker)
        self.answer: Callable[[Asked], Said | None] = lambda _: None

    @property
    def stoker(self) -> Served:
        return self.described.stoker

    def decide(self, asked: Asked) -> Said:
        """Return the test's answer, or else the service's."""
        said = self.answer(asked)
        if said is None:
            said = forward(self.stoker.port, asked)
            if said.stream is None and self.described.is_known(asked.verb, asked.target):
                answer = Answer(said.status, Headers(said.headers), said.raw)
                self.described.check(asked.verb, asked.target, answer)
        return said


@contextmanager
def recorded_service(folder: Path) -> Iterator[tuple[Service, Answering]]:
    """Yield a running service and its proxy, whose URL is the service's public one."""
    service = Service(Served(folder, free_port()))
    proxy = Answering(service.decide)
    try:
        with served(folder, "--public-url", proxy.url, port=service.stoker.port) as service.described.stoker:
            yield service, proxy
    finally:
        proxy.close()


class Site:
    """A new project at the service, with a user who has ``roles`` in it."""

    def __init__(self, service: Service, proxy: Answering, roles: Sequence[str] = ("member",)) -> None:
        self.service = service
        self.url = proxy.url
        self.stoker = service.stoker
        self._proxy = proxy
        self.account: Account = create_account(self.stoker, *roles, project=create_project(self.stoker))
        self.variables = {
            "OS_AUTH_URL": f"{proxy.url}/identity/v3",
            "OS_USERNAME": self.account.name,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_ID": self.account.project,
            "OS_USER_DOMAIN_NAME": "Default",
        }
        #: The answers of the test: a verb, the beginning of a path with its query below the project's, and a function.
        self.answers: list[tuple[str, str, Callable[[Asked], Said]]] = []
        #: By the names of their servers.
        self.agents: dict[str, SpokenAgent] = {}
        self._acting: list[ActingAgent] = []
        service.answer = self._answer
        proxy.asked.clear()

    def _answer(self, asked: Asked) -> Said | None:
        target = asked.target.removeprefix(self._root)
        for verb, start, answer in self.answers:
            if asked.verb == verb and target.startswith(start):
                return answer(asked)
        return None

    @property
    def _root(self) -> str:
        return f"/v1/{self.account.project}"

    def close(self) -> None:
        """Leave all answers to the service, and end the agents."""
        self.service.answer = lambda _: None
        for acting in self._acting:
            acting.stop()
        assert self._proxy.errors == []

    # what the client sent

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Verbs and paths with queries, below the project's."""
        return [(asked.verb, asked.target.removeprefix(self._root)) for asked in self._proxy.asked]

    @property
    def bodies(self) -> list[tuple[str, str, Any]]:
        """Verbs, paths and bodies of the requests that have one, without logins."""
        return [
            (asked.verb, asked.path.removeprefix(self._root), asked.json)
            for asked in self._proxy.asked
            if asked.body and asked.path.startswith(self._root)
        ]

    # the service's state

    def api(self, verb: str, path: str, body: Any = None) -> Any:
        """Call the service without the proxy, and return the answer's body. ``path`` is below the project's."""
        answer = self.account.heat(verb, path, body)
        assert answer.status < 400, answer.raw
        return answer.body

    def add_agent(self, name: str, hooks: str = HOOKS) -> SpokenAgent:
        """Enroll a server. Its agent polls once, so it is online."""
        token = self.api("POST", "/servers", {"name": name})["enrollment"]["token"]
        key = trade(self.stoker, token).body
        agent = SpokenAgent(self.stoker, key["server_id"], name, key["key"])
        assert agent.document(X_Stoker_Agent=hooks).status == 200
        self.agents[name] = agent
        return agent

    def find_agent(self, name: str) -> SpokenAgent:
        """Return the agent of a server, which is enrolled unless it was."""
        if name not in self.agents:
            self.add_agent(name)
        return self.agents[name]

    def act(self, agent: SpokenAgent, *acts: Any) -> None:
        """Let an agent act until the test ends. ``acts`` are those of ``ActingAgent``."""
        self._acting.append(ActingAgent(agent, *acts))

    def deploy(self, agent: SpokenAgent, name: str = "setup", **more: Any) -> dict[str, Any]:
        """Create a config and deploy it to a server. Return the deployment."""
        return deploy(self.account, agent.id, name=name, **more)

    def deployment(self, id_: str) -> dict[str, Any]:
        """Return the present state of a deployment."""
        return shown(self.account, {"id": id_})

    def create_stack(self, name: str, template: str = EMPTY, *, wait: bool = True) -> dict[str, Any]:
        """Create a stack, and wait until it is complete or failed."""
        created: dict[str, Any] = self.api("POST", "/stacks", {"stack_name": name, "template": template})["stack"]
        if not wait:
            return created
        stack: dict[str, Any] = {}

        def has_ended() -> bool:
            stack.update(self.api("GET", f"/stacks/{name}/{created['id']}")["stack"])
            return not stack["stack_status"].endswith("_IN_PROGRESS")

        self.stoker.until(has_ended)
        return stack

    def resource_ids(self, stack: dict[str, Any]) -> dict[str, str]:
        """Return the physical ids of a stack's resources by their names."""
        listed = self.api("GET", f"/stacks/{stack['stack_name']}/{stack['id']}/resources")["resources"]
        return {resource["resource_name"]: resource["physical_resource_id"] for resource in listed}

    # answers instead of the service's

    def change(self, verb: str, path: str, change: Callable[[Any], Any]) -> None:
        """Answer with what ``change`` makes of the service's answers."""

        def answer(asked: Asked) -> Said:
            said = forward(self.stoker.port, asked)
            if said.status >= 300:
                return said
            return Said(said.status, json.dumps(change(json.loads(said.raw))).encode(), said.headers)

        self.answers.append((verb, path, answer))

    def replace(self, verb: str, path: str, said: Said) -> None:
        """Answer with ``said``."""
        self.answers.append((verb, path, lambda _: said))


def succeed(agent: SpokenAgent, run: dict[str, Any]) -> None:
    """End a run."""
    agent.finish(run["id"])


class ActingAgent(threading.Thread):
    """Does with each run of a server what ``act`` does, one run after the other, and with each check what ``check``."""

    def __init__(
        self,
        agent: SpokenAgent,
        act: Callable[[SpokenAgent, dict[str, Any]], object] = succeed,
        check: Callable[[SpokenAgent, dict[str, Any]], object] = lambda *_: None,
    ) -> None:
        super().__init__(daemon=True)
        self.agent = agent
        self._acts = {"deployments": act, "checks": check}
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        """Poll until ``stop``."""
        begun: set[tuple[str, int | None]] = set()
        etag = ""
        while not self._stopped.is_set():
            answer = self.agent.document(wait=1, etag=etag, X_Stoker_Agent=HOOKS)
            if answer.status != 200:
                continue
            etag = answer.headers["ETag"]
            for kind, act in self._acts.items():
                for entry in answer.body.get(kind, ()):
                    key = entry["id"], entry.get("requested")
                    if key not in begun:
                        begun.add(key)
                        act(self.agent, entry)

    def stop(self) -> None:
        """End the polls."""
        self._stopped.set()
        self.join(60)
