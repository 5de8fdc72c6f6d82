"""Enrolled servers, written to the database of a Stoker: ten thousand enrollments by the API would take a minute."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from stoker.model.server import Kind, Server
from stoker.serve import load_site_secret
from stoker.servers.keys import Keys
from stoker.settings import Settings
from stoker.store import servers
from stoker.store.open import Store
from stoker.store.tx import Tx
from support.server import Served

#: Servers in one transaction.
_BATCH = 1000


def create_servers(stoker: Served, project_id: str, names: Sequence[str], labels: Mapping[str, str]) -> dict[str, str]:
    """Create servers as their enrollment does, and return their agents' keys by name."""
    settings = Settings(state_dir=stoker.state_dir, database=stoker.database or "")
    store = Store(settings.database_url)
    try:
        issuer = Keys(store, load_site_secret(settings, store))

        def create(tx: Tx, name: str) -> str:
            id = str(uuid.uuid4())
            values = {"name": name, "kind": Kind.ENROLLED, "created_at": tx.now, "labels": labels}
            servers.add(tx, Server(id=id, project_id=project_id, **values))
            return issuer.issue(tx, id)

        keys: dict[str, str] = {}
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            issued = store.write(lambda tx, batch=batch: [create(tx, name) for name in batch])
            keys |= dict(zip(batch, issued, strict=True))
        return keys
    finally:
        store.close()
