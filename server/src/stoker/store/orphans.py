"""Queries for orphans: queues, containers and objects of embedded services whose owner no longer exists."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model.messaging import Queue
from stoker.store.query import table
from stoker.store.queues import QUEUES
from stoker.store.tx import Tx

_LIVE_STACK = "EXISTS (SELECT 1 FROM stacks s WHERE s.id = {owner} AND s.deleted_at IS NULL)"
#: The owner is set but is no existing resource, server, deployment or stack.
_ORPHANED = (
    "{owner} IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = {owner})"
    " AND NOT EXISTS (SELECT 1 FROM servers v WHERE v.id = {owner})"
    " AND NOT EXISTS (SELECT 1 FROM deployments d WHERE d.id = {owner})"
    f" AND NOT {_LIVE_STACK}"
)
#: Return the orphaned queues, sorted by project and name.
of_queues: Callable[[Tx], list[Queue]] = QUEUES.lister(
    f"{_ORPHANED.format(owner='queues.owner')} ORDER BY project_id, name"
)
#: Return the orphaned containers: (account, name).
of_containers: Callable[[Tx], list[tuple[str, str]]] = table(
    f"SELECT account, name FROM containers WHERE {_ORPHANED.format(owner='containers.owner')} ORDER BY account, name"
)
#: Return the orphaned objects in containers that still have an owner: (account, container, name). A stack's container
#: has the objects of resources that signal by objects. Their names begin with the resource's id.
of_objects: Callable[[Tx], list[tuple[str, str, str]]] = table(
    "SELECT o.account, o.container, o.name FROM objects o"
    " JOIN containers c ON c.account = o.account AND c.name = o.container"
    f" WHERE {_LIVE_STACK.format(owner='c.owner')} AND length(o.name) >= 36"
    " AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = substr(o.name, 1, 36))"
    " ORDER BY o.account, o.container, o.name"
)
