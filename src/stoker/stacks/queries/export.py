"""Export and abandonment of stacks. An abandoned stack leaves all its objects in place for another stack to adopt."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import secrets
from stoker.stacks.engine import Engine, phases
from stoker.stacks.engine.commit import commit
from stoker.stacks.engine.ownership import disown
from stoker.stacks.engine.session import StackSession
from stoker.stacks.queries.prefetch import prefetch_trees
from stoker.store import resources, stacks
from stoker.store.tx import Tx


def export(tx: Tx, stack: Stack) -> dict[str, Any]:
    """Return Heat's abandon data: everything needed to adopt the stack, including values of hidden parameters."""
    source = stacks.source(tx, stack.id)
    environment = dict(source.environment)
    parameters = {**environment.get("parameters", {}), **source.supplied}
    environment["parameters"] = parameters
    prefetch_trees(tx, [stack.root_id])
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


def redacted_export(tx: Tx, stack: Stack) -> dict[str, Any]:
    """Return the abandon data as shown to people, without secrets."""
    data, source = export(tx, stack), stacks.source(tx, stack.id)
    return {
        **data,
        "template": secrets.redacted_template(tx, stack, source),
        "environment": secrets.redacted_environment(tx, stack, source),
        "files": secrets.visible_files(tx, stack),
        "resources": tx.secrets.redact(data["resources"]),
    }


def _resources(tx: Tx, stack: Stack) -> dict[str, Any]:
    inner = {resource.parent_resource_id: resource for resource in stacks.children(tx, stack.id)}
    present = [resource for resource in resources.of_stack(tx, stack.id) if resource.current]
    return {resource.name: _export_resource(tx, resource, inner.get(resource.id)) for resource in present}


def _export_resource(tx: Tx, resource: Resource, inner: Stack | None) -> dict[str, Any]:
    exported = {
        "name": resource.name,
        "resource_id": resource.physical_id,
        "type": resource.declared_type,
        "action": resource.action.value,
        "status": resource.status.value,
        "metadata": dict(resource.metadata),
        "resource_data": dict(resource.data),
    }
    if inner is not None:
        exported["resources"] = _resources(tx, inner)
    return exported


def abandon(tx: Tx, engine: Engine, stack_id: str) -> dict[str, Any]:
    """Delete a stack without deleting its objects. Return its abandon data. Raises ActionInProgress."""
    stack = stacks.get(tx, stack_id, for_update=True)
    phases.refuse_busy(stack)
    exported = export(tx, stack)
    for member in stacks.tree(tx, stack.id):
        own_resources = resources.of_stack(tx, member.id)
        for resource in own_resources:
            disown(tx, engine, resource)
        resources.delete_all(tx, [resource.id for resource in own_resources])
        session = StackSession(tx, engine, member)
        phases.forget_plan(session)  # a failed operation leaves steps that were not reached
        session.set(
            action=Action.DELETE,
            status=Status.COMPLETE,
            reason="Stack ABANDON completed successfully",
            deleted_at=tx.now,
        )
        session.events.record_stack(session.stack)
        commit(session, notify_parent=False)
    return exported
