"""A Stoker whose object store is asked as Swift is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import pytest

from support.raw import request
from support.server import Answer, Served, served_on


@dataclass
class Swift:
    """
    Raw requests: names, headers and bodies go out as the bytes they are said to be. Tests with threads log in before,
    by the container that they create.
    """

    stoker: Served

    @property
    def root(self) -> str:
        return f"/object-store/v1/AUTH_{self.stoker.project}"

    def path(self, *names: str) -> str:
        return "/".join([self.root, *(quote(name) for name in names)])

    def __call__(
        self, verb: str, path: str, data: bytes | None = None, /, *, token: str | None = "", **headers: str
    ) -> Answer:
        """``path`` below the account, with its query; ``headers`` with underscores. ``token`` None: without one."""
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.raw(verb, self.root + path, data, said, token=token)

    def raw(
        self,
        verb: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = "",
    ) -> Answer:
        said = dict(headers or {})
        if token is not None:
            said["X-Auth-Token"] = token or self.stoker.token
        return request(self.stoker, verb, path, data, said)

    def container(self, **headers: str) -> str:
        """A fresh one: its path below the account."""
        path = f"/c{uuid.uuid4().hex[:10]}"
        assert self("PUT", path, b"", **headers).status == 201
        return path


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory) -> Iterator[Served]:
    flags = ("--proxy-addresses", "127.0.0.1")
    with served_on(request, tmp_path_factory.mktemp("objects"), *flags) as running:
        yield running


@pytest.fixture
def swift(stoker) -> Swift:
    return Swift(stoker)


@pytest.fixture(scope="session")
def fuzzed(stoker) -> str:
    """A container for all that may come."""
    return Swift(stoker).container()
