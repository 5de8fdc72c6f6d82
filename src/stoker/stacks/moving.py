"""Stacks that change hands: exported, and abandoned with everything they made left standing."""

from __future__ import annotations

from typing import Any

from stoker.hot import Parameters
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import phases
from stoker.stacks.closing import close
from stoker.stacks.engine import Engine
from stoker.stacks.looking import look_ahead
from stoker.stacks.transition import Transition
from stoker.store import deployments, resources, servers, stacks
from stoker.store.tx import Tx

_HIDDEN = "******"


def export(tx: Tx, stack: Stack, *, secrets: bool = True) -> dict[str, Any]:
    """Heat's abandon data: all that it takes to adopt the stack. ``secrets``: with the values of hidden parameters."""
    source = stacks.source(tx, stack.id)
    environment = dict(source.environment)
    given = {**environment.get("parameters", {}), **source.supplied}
    hidden = frozenset() if secrets else Parameters.from_json(stack.parameters).hidden
    environment["parameters"] = {name: _HIDDEN if name in hidden else value for name, value in given.items()}
    look_ahead(tx, [stack.root_id])
    return {
        "name": stack.name,
        "id": stack.id,
        "action": stack.action.value,
        "status": stack.status.value,
        "template": dict(source.template),
        "environment": environment,
        "files": dict(source.files),
        "project_id": stack.project_id,
        "stack_user_project_id": stack.user_project_id,
        "tags": list(stack.tags),
        "resources": _resources(tx, stack),
    }


def _resources(tx: Tx, stack: Stack) -> dict[str, Any]:
    inner = {each.parent_resource_id: each for each in stacks.children(tx, stack.id)}
    present = [each for each in resources.of_stack(tx, stack.id) if each.current]
    return {each.name: _exported(tx, each, inner.get(each.id)) for each in present}


def _exported(tx: Tx, resource: Resource, inner: Stack | None) -> dict[str, Any]:
    said = {
        "name": resource.name,
        "resource_id": resource.physical_id,
        "type": resource.type,
        "action": resource.action.value,
        "status": resource.status.value,
        "metadata": dict(resource.metadata),
        "resource_data": dict(resource.data),
    }
    if inner is not None:
        said["resources"] = _resources(tx, inner)
    return said


def abandon(tx: Tx, engine: Engine, stack_id: str) -> dict[str, Any]:
    """The stack is gone and nothing of what it made is. Raises ActionInProgress."""
    stack = stacks.get(tx, stack_id, hold=True)
    phases.refuse_busy(stack)
    said = export(tx, stack)
    for each in stacks.tree(tx, stack.id):
        found = resources.of_stack(tx, each.id)
        for resource in found:
            if resource.physical_id:
                deployments.relink(tx, resource.physical_id, None, None)
                servers.relink(tx, resource.physical_id, None, None)
        resources.delete_all(tx, [resource.id for resource in found])
        transition = Transition(tx, engine, each)
        transition.set(
            action=Action.DELETE,
            status=Status.COMPLETE,
            reason="Stack ABANDON completed successfully",
            deleted_at=tx.now,
        )
        transition.stack_event()
        close(transition, quiet=True)
    return said
