"""One Stoker for what asks without leaving anything behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import Answer, Served, served


@pytest.fixture(scope="session")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http")) as running:
        yield running


class Refused:
    """Asks, and holds the answer to Heat's shape of an error."""

    def __init__(self, stoker: Served) -> None:
        self.stoker = stoker

    def __call__(self, verb: str, path: str, body: object = None, *, status: int = 400) -> str:
        """The error's message."""
        answer = self.stoker.heat(verb, path, body)
        return self.check(answer, status)

    @staticmethod
    def check(answer: Answer, status: int) -> str:
        assert answer.status == status, answer.raw[:400]
        said = answer.body
        assert said["code"] == status
        assert said["title"]
        assert said["explanation"]
        assert said["error"]["traceback"] is None
        assert said["error"]["type"]
        return said["error"]["message"]


@pytest.fixture
def refused(stoker) -> Iterator[Refused]:
    """Whatever is refused leaves everything as it was."""

    def everything():
        servers = stoker.heat("GET", "/servers").body["servers"]
        for server in servers:
            del server["status"]  # a silent server goes OFFLINE by the clock, whatever is requested
        paths = ("/stacks?show_deleted=true", "/software_configs", "/software_deployments")
        return [*(stoker.heat("GET", path).body for path in paths), servers]

    before = everything()
    yield Refused(stoker)
    assert everything() == before
    assert stoker.request("GET", "/healthz").status == 200
