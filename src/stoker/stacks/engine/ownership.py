"""Releases resources without deleting their objects. Released servers and deployments belong to no stack."""

from __future__ import annotations

from dataclasses import replace

from stoker.model.stack import Resource, Stack
from stoker.model.status import Action
from stoker.resources.base import KEEPS_OBJECT, WAKE
from stoker.stacks.engine import Engine, phases
from stoker.stacks.engine.session import StackSession
from stoker.store import deployments, resources, selectors, servers, stacks
from stoker.store.tx import Tx


def disown(tx: Tx, engine: Engine, resource: Resource) -> None:
    """Release a resource's server or deployment, so that it can be deleted alone or adopted by another stack."""
    engine.env.work.cancel(tx, WAKE, resource.id)
    selectors.remove(tx, resource.id)
    if resource.physical_id:
        deployments.disown(tx, resource.physical_id, resource.id)
        servers.disown(tx, resource.physical_id, resource.id)


def keep_adopted(tx: Tx, root: Stack) -> None:
    """
    Keep the objects that a stack and its nested stacks adopted, for a deletion before the adoption is complete.

    The stack that had the objects before may still use them.
    """
    for member in stacks.tree(tx, root.id):
        adopted = [resource for resource in resources.of_stack(tx, member.id) if resource.action is Action.ADOPT]
        resources.save_all(tx, [replace(item, data={**item.data, KEEPS_OBJECT: True}) for item in adopted])


def retain(session: StackSession, resource: Resource) -> None:
    """
    Release a resource with ``deletion_policy: Retain``.

    The objects and queues for its document and results are deleted, because they serve only the resource. For a nested
    stack, all of its resources are retained, and the stack itself is deleted.
    """
    session.type_of(resource).retain(session.context, resource)
    disown(session.tx, session.engine, resource)
    inner = stacks.find(session.tx, resource.physical_id) if resource.physical_id else None
    if inner is not None and inner.parent_resource_id == resource.id:
        _retain_all(session, inner)


def _retain_all(session: StackSession, stack: Stack) -> None:
    tx = session.tx
    inner = StackSession(tx, session.engine, stack)
    for resource in resources.of_stack(tx, stack.id):
        retain(inner, resource)
        resources.delete_all(tx, [resource.id])
    phases.begin_operation(inner, Action.DELETE)
    phases.complete(inner)
    inner.set(deleted_at=tx.now)
    inner.save()
