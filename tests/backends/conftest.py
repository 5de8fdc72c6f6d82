from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.backends import QueueAgent, ask, popped, queues_of, reporter, swift_flags, until_document, zaqar_flags
from support.server import Served
from support.service_processes import Peer


@pytest.fixture(scope="session")
def swift(tmp_path_factory, start_swift) -> Iterator[Peer]:
    with start_swift(tmp_path_factory.mktemp("swift") / "it") as running:
        yield running


@pytest.fixture(scope="session")
def zaqar(tmp_path_factory, start_zaqar) -> Iterator[Peer]:
    with start_zaqar(tmp_path_factory.mktemp("zaqar")) as running:
        yield running


@dataclass(frozen=True)
class Objects:
    """Documents and results of an agent of OpenStack's images travel as objects. ``Queues`` has the same methods."""

    peer: Peer
    transports = ("POLL_TEMP_URL", "TEMP_URL_SIGNAL")
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


@dataclass(frozen=True)
class Queues:
    peer: Peer
    transports = ("ZAQAR_MESSAGE", "ZAQAR_SIGNAL")
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


@pytest.fixture(params=[Objects, Queues])
def channel(request) -> Objects | Queues:
    service = "swift" if request.param is Objects else "zaqar"
    return request.param(request.getfixturevalue(service))
