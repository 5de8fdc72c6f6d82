"""One Stoker on each database for all that use queues of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.server import Answer, Served, served_on

PATCH_TYPE = "application/openstack-messaging-v2.0-json-patch"


@dataclass
class Zaqar:
    """The messaging face as one client sees it: the administrator's token, and a Client-ID of its own."""

    stoker: Served
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.headers:
            self.headers = {"X-Auth-Token": self.stoker.token}
        self.headers = {"Client-ID": str(uuid.uuid4()), **self.headers}

    def __call__(self, verb: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self.stoker.request(verb, f"/messaging/v2{path}", body, {**self.headers, **(headers or {})})

    def another(self) -> Zaqar:
        return Zaqar(self.stoker, {"X-Auth-Token": self.stoker.token})

    def queue(self, **metadata: Any) -> str:
        """The path of a new queue."""
        path = f"/queues/q-{uuid.uuid4().hex[:12]}"
        assert self("PUT", path, metadata).status == 201
        return path

    def post(self, queue: str, *bodies: Any, **more: Any) -> list[str]:
        """The new messages' ids."""
        answer = self("POST", f"{queue}/messages", {"messages": [{"body": body, **more} for body in bodies]})
        assert answer.status == 201, answer.raw
        return [each.rpartition("/")[2] for each in answer.body["resources"]]

    def bodies(self, queue: str, query: str = "echo=true&limit=20") -> list[Any]:
        answer = self("GET", f"{queue}/messages?{query}")
        assert answer.status == 200, answer.raw
        return [each["body"] for each in answer.body["messages"]]

    def pop(self, queue: str, count: int = 1) -> list[Any]:
        answer = self("DELETE", f"{queue}/messages?pop={count}")
        assert answer.status == 200, answer.raw
        return [each["body"] for each in answer.body["messages"]]

    def pages(self, path: str, noun: str) -> Iterator[Any]:
        """Follow the links of a list from page to page, until an empty one."""
        while (page := self("GET", path).body)[noun]:
            yield page
            [link] = page["links"]
            assert (link["rel"], urlsplit(link["href"]).path) == ("next", f"/v2{path.partition('?')[0]}")
            path = link["href"].removeprefix("/v2")
        assert page == {noun: [], "links": []}

    def refused(self, verb: str, path: str, body: Any = None, *, status: int = 400, **more: Any) -> str:
        """What an error says, held to Zaqar's shape of one."""
        answer = self(verb, path, body, **more)
        assert answer.status == status, (answer.status, answer.raw[:400])
        assert set(answer.body) == {"title", "description"}
        assert answer.body["title"]
        return answer.body["description"]


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory) -> Iterator[Served]:
    with served_on(request, tmp_path_factory.mktemp("messaging"), "--webhook-networks", "127.0.0.0/8") as running:
        yield running


@pytest.fixture
def zaqar(stoker) -> Zaqar:
    return Zaqar(stoker)


@pytest.fixture
def queue(zaqar) -> str:
    return zaqar.queue()
