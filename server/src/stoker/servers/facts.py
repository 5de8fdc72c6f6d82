"""Facts: stores what an agent reports about its machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.errors import Invalid, Unauthorized
from stoker.store import servers
from stoker.store.tx import Tx

#: Maximum levels of maps and lists.
DEEPEST = 8
#: Maximum characters of a name.
_LONGEST_NAME = 255


def store_facts(tx: Tx, server_id: str, facts: Mapping[str, Any]) -> None:
    """
    Store the facts that a server's agent reports. Unchanged facts write nothing.

    Raises Invalid for facts that are nested too deeply or have an invalid name.
    """
    _check(facts)
    server = servers.find(tx, server_id, for_update=True)
    if server is None:
        raise Unauthorized("This key is not valid, or has been revoked.")
    before = servers.find_facts(tx, server_id)
    if before is not None and before.facts == facts:
        return
    servers.put_facts(tx, server, before, facts)
    hooks = tuple(facts.get("hooks") or ())
    if hooks and hooks != server.hooks:
        # A run may have installed a hook: the next poll reports it only at the next heartbeat.
        servers.change(tx, server_id, hooks=hooks)


def _check(facts: Mapping[str, Any]) -> None:
    """Check depth and names level by level."""
    level: list[Any] = [facts]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                for name in value:
                    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
                        raise Invalid(f"facts: {name!r:.80} is no name: 1 to {_LONGEST_NAME} printable characters")
                inner.extend(value.values())
            else:
                inner.extend(value)
        level = [value for value in inner if isinstance(value, Mapping | list)]
        if not level:
            return
    raise Invalid(f"facts are nested too deeply: more than {DEEPEST} levels")
