"""Queries for orphans: queues, containers and objects of embedded services whose owner no longer exists."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.model.messaging import Queue
from stoker.store.queues import QUEUES
from stoker.store.schema import containers, deployments, objects, queues, resources, servers, stacks
from stoker.store.tx import Tx


def _is_orphaned(owner: sa.Column[str]) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for an owner that is set but is no existing resource, server, deployment or stack."""
    return [
        owner.is_not(None),
        sa.not_(sa.exists().where(resources.c.id == owner)),
        sa.not_(sa.exists().where(servers.c.id == owner)),
        sa.not_(sa.exists().where(deployments.c.id == owner)),
        sa.not_(_is_live_stack(owner)),
    ]


def _is_live_stack(id: sa.Column[str]) -> sa.ColumnElement[bool]:
    return sa.exists().where(stacks.c.id == id, stacks.c.deleted_at.is_(None))


_QUEUES = QUEUES.select(*_is_orphaned(queues.c.owner)).order_by(queues.c.project_id, queues.c.name)
_CONTAINERS = (
    sa.select(containers.c.account, containers.c.name)
    .where(*_is_orphaned(containers.c.owner))
    .order_by(containers.c.account, containers.c.name)
)
#: A stack's container has one object for each resource that signals by an object. Its name is the resource's id.
_OBJECTS = (
    sa.select(objects.c.account, objects.c.container, objects.c.name)
    .join_from(
        objects,
        containers,
        sa.and_(containers.c.account == objects.c.account, containers.c.name == objects.c.container),
    )
    .where(
        _is_live_stack(containers.c.owner),
        objects.c.replaced_at.is_(None),
        sa.func.length(objects.c.name) == 36,
        sa.not_(sa.exists().where(resources.c.id == objects.c.name)),
    )
    .order_by(objects.c.account, objects.c.container, objects.c.name)
)


def of_queues(tx: Tx) -> list[Queue]:
    """Return the orphaned queues, sorted by project and name."""
    return QUEUES.all(tx, _QUEUES, {})


def of_containers(tx: Tx) -> list[tuple[str, str]]:
    """Return the orphaned containers: (account, name)."""
    return [(row.account, row.name) for row in tx.run(_CONTAINERS)]


def of_objects(tx: Tx) -> list[tuple[str, str, str]]:
    """Return the orphaned objects in containers that still have an owner: (account, container, name)."""
    return [(row.account, row.container, row.name) for row in tx.run(_OBJECTS)]
