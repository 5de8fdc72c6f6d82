"""The whole program inside the test's own process: its store can be aged, its statements counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from starlette.testclient import TestClient

from stoker import serve
from stoker.settings import Settings
from stoker.store.open import Store


class Inside:
    """The administrator is logged in. ``store``: one that is open already; None: an own one, on SQLite."""

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        settings = Settings(state_dir=folder, public_url="http://testserver")
        self._own = store is None
        self.store = serve.open_store(settings) if store is None else store
        joined = serve.join(settings, self.store)
        self.services = joined.services
        password = self.services.identity.first_start()
        self.statements = 0
        sa.event.listen(self.store.engine, "before_cursor_execute", self._count)
        self.client = TestClient(joined.app)
        user = {"name": "admin", "domain": {"name": "Default"}, "password": password}
        said = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        answer = self.client.post("/identity/v3/auth/tokens", json=said)
        self.headers = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
        self.project = answer.json()["token"]["project"]["id"]

    def _count(self, *_: object) -> None:
        self.statements += 1

    def counted(self, do: Callable[[], Any]) -> int:
        """How many statements it costs, the token being known: those that are remembered are looked up now and then."""
        self.services.tokens.read(self.headers["X-Auth-Token"])
        before = self.statements
        do()
        return self.statements - before

    def close(self) -> None:
        self.client.close()
        if self._own:
            self.store.close()
