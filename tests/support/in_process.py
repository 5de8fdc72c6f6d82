"""The complete program in the test's process, so that its store can be aged and its statements counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from stoker import serve
from stoker.identity import tokens
from stoker.settings import Settings
from stoker.store.open import Store
from support.server import Answer, HeatClient
from support.statements import recorded_statements


class Inside(HeatClient):
    """
    The program with a logged-in administrator. ``store`` is an open store; None opens a new one on SQLite.

    ``cloud`` is an entry of clouds.yaml.
    """

    def __init__(self, folder: Path, store: Store | None = None, cloud: str = "") -> None:
        settings = Settings(
            state_dir=folder, public_url="http://testserver", webhook_networks="127.0.0.0/8", cloud=cloud
        )
        self._own = store is None
        self.store = serve.open_store(settings, serve.key_source(settings)) if store is None else store
        self.services = serve.create_app(settings, self.store, serve.load_site_secret(settings, self.store))
        password = self.services.identity.first_start()
        self._recording = ExitStack()
        self._statements = self._recording.enter_context(recorded_statements(self.store))
        self.client = TestClient(serve.create_asgi(self.services))
        user = {"name": "admin", "domain": {"name": "Default"}, "password": password}
        login = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        answer = self.client.post("/identity/v3/auth/tokens", json=login)
        self.headers = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
        self.project = answer.json()["token"]["project"]["id"]

    @property
    def statements(self) -> int:
        """The number of statements that the program has executed."""
        return len(self._statements)

    def counted(self, do: Callable[[], Any]) -> int:
        """
        Return how many statements ``do`` executes.

        The token is validated first, because cached tokens expire after seconds; this one after any pause of ``do``.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "_REMEMBERED_SECONDS", 3600.0)
            self.services.tokens.read(self.headers["X-Auth-Token"])
        before = self.statements
        do()
        return self.statements - before

    def request(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request as the administrator. Error statuses and redirects are returned."""
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        sent = {**self.headers, **headers}
        answer = self.client.request(verb, path, headers=sent, follow_redirects=False, **content)
        return Answer(answer.status_code, answer.headers, answer.content)

    def heat(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.request(verb, f"/v1/{self.project}{path}", body, **headers)

    def call(self, verb: str, path: str, body: Any = None, status: int | None = None) -> Any:
        """Return the decoded answer to a request of Heat's API, which must have this status, by default a success."""
        answer = self.heat(verb, path, body)
        assert answer.status == status or (status is None and answer.status < 300), (answer.status, answer.raw)
        return answer.body

    def close(self) -> None:
        self.client.close()
        self._recording.close()
        if self._own:
            self.store.close()
