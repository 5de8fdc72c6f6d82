from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.backends import (
    CLIENT,
    QueueAgent,
    ask,
    popped,
    queues_of,
    reporter,
    swift_flags,
    until_document,
    zaqar_flags,
)
from support.server import Served, served
from support.service_processes import Peer


@pytest.fixture(scope="session")
def swift(tmp_path_factory, start_swift) -> Iterator[Peer]:
    with start_swift(tmp_path_factory.mktemp("swift") / "it") as running:
        yield running


@pytest.fixture(scope="session")
def zaqar(tmp_path_factory, start_zaqar) -> Iterator[Peer]:
    with start_zaqar(tmp_path_factory.mktemp("zaqar")) as running:
        yield running


@pytest.fixture(scope="module")
def embedded(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("embedded")) as running:
        yield running


@dataclass(frozen=True)
class Objects:
    """Documents and results of an agent of OpenStack's images travel as objects. ``Queues`` has the same methods."""

    peer: Peer
    transports = ("POLL_TEMP_URL", "TEMP_URL_SIGNAL")
    #: The source of Stoker's agent that reads the documents.
    source = "request"
    flags = staticmethod(swift_flags)

    def await_run(self, stoker: Served, stack: str, who: str = "world") -> dict[str, Any]:
        """Wait until the only run of the newest document is for ``who``, and return its inputs."""
        (run,) = until_document(stoker, stoker.outputs(stack)["agent"]["request"]["metadata_url"], who)
        return run

    def open_report(self, stoker: Served, run: dict[str, Any]) -> Callable[[Any], None]:
        """Return a function that writes a result of the run. The function does not need Stoker."""
        assert run["deploy_signal_id"].startswith(self.peer.url)
        return lambda result: stoker.until(lambda: ask("PUT", run["deploy_signal_id"], result).status == 201)

    def is_gone(self, stoker: Served, agent: dict[str, Any]) -> bool:
        """Whether the document is no longer where this configuration of an agent says."""
        return ask("GET", agent["request"]["metadata_url"]).status == 404

    def forge(self, section: dict[str, Any], document: Any) -> None:
        """Write a document where the section of an agent's configuration says that the agent reads."""
        login = {"X-Storage-User": "proj:user", "X-Storage-Pass": "pw"}
        token = ask("GET", f"{self.peer.url}/auth/v1.0", None, login).headers["X-Auth-Token"]
        place = section["metadata_url"].partition("?")[0]
        assert ask("PUT", place, document, {"X-Auth-Token": token}).status == 201


@dataclass(frozen=True)
class Queues:
    peer: Peer
    transports = ("ZAQAR_MESSAGE", "ZAQAR_SIGNAL")
    source = "zaqar"
    flags = staticmethod(lambda peer, _folder: zaqar_flags(peer))

    def await_run(self, stoker: Served, stack: str, who: str = "world") -> dict[str, Any]:
        agent = QueueAgent(stoker.outputs(stack)["agent"]["zaqar"])
        (run,) = popped(stoker, agent, who)
        assert agent.pop(agent.said["queue_id"]) == [], "only the newest document is there"
        return run

    def open_report(self, stoker: Served, run: dict[str, Any]) -> Callable[[Any], None]:
        queue, (url, headers) = run["deploy_queue_id"], reporter(run).login
        stoker.until(lambda: queue in queues_of(self.peer, stoker.project))

        def post(result: Any) -> None:
            message = {"messages": [{"body": result}]}
            assert ask("POST", f"{url}/v2/queues/{queue}/messages", message, headers).status == 201

        return post

    def is_gone(self, stoker: Served, agent: dict[str, Any]) -> bool:
        return agent["zaqar"]["queue_id"] not in queues_of(self.peer, stoker.project)

    def forge(self, section: dict[str, Any], document: Any) -> None:
        headers = {**CLIENT, "X-Project-Id": section["project_id"]}
        body = {"messages": [{"body": document, "ttl": 300}]}
        place = f"{self.peer.url}/v2/queues/{section['queue_id']}/messages"
        assert ask("POST", place, body, headers).status == 201


@pytest.fixture(params=[Objects, Queues])
def channel(request) -> Objects | Queues:
    service = "swift" if request.param is Objects else "zaqar"
    return request.param(request.getfixturevalue(service))
