"""Queues, containers and objects of the embedded services whose resource, server or stack is no more."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.model.messaging import Queue
from stoker.store import queues as stored_queues
from stoker.store.schema import containers, deployments, objects, queues, resources, servers, stacks
from stoker.store.tx import Tx


def _nobodys(owner: sa.Column[str]) -> list[sa.ColumnElement[bool]]:
    """Made for somebody who is neither a resource nor a server nor a deployment nor a stack that lives."""
    return [
        owner.is_not(None),
        sa.not_(sa.exists().where(resources.c.id == owner)),
        sa.not_(sa.exists().where(servers.c.id == owner)),
        sa.not_(sa.exists().where(deployments.c.id == owner)),
        sa.not_(_is_live_stack(owner)),
    ]


def _is_live_stack(id: sa.Column[str]) -> sa.ColumnElement[bool]:
    return sa.exists().where(stacks.c.id == id, stacks.c.deleted_at.is_(None))


_QUEUES = sa.select(queues).where(*_nobodys(queues.c.owner)).order_by(queues.c.project_id, queues.c.name)
_CONTAINERS = (
    sa.select(containers.c.account, containers.c.name)
    .where(*_nobodys(containers.c.owner))
    .order_by(containers.c.account, containers.c.name)
)
#: A stack's container holds an object for each resource that signals by one, under the resource's id.
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
    return [stored_queues.of_row(row) for row in tx.run(_QUEUES)]


def of_containers(tx: Tx) -> list[tuple[str, str]]:
    """(account, name)"""
    return [(row.account, row.name) for row in tx.run(_CONTAINERS)]


def of_objects(tx: Tx) -> list[tuple[str, str, str]]:
    """(account, container, name) of those in containers that stay."""
    return [(row.account, row.container, row.name) for row in tx.run(_OBJECTS)]
