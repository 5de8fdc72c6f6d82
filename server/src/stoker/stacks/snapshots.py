"""Snapshots: states of a stack that can be restored."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from msgspec import convert
from msgspec.structs import replace

from stoker.model.errors import Invalid, NotSupported
from stoker.model.stack import Resource, Snapshot, Source, Stack
from stoker.model.status import Action, Status
from stoker.resources.base import DONE, SavesState
from stoker.stacks import export, operations
from stoker.stacks.engine import Engine, operation
from stoker.stacks.engine.actions import begin_action, finish_action
from stoker.stacks.engine.operation import SAVED
from stoker.stacks.engine.progress import advance, commit, lock_stack
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import ResolvedStack, prepare_again
from stoker.store import resources, stacks
from stoker.store.tx import Tx

#: Maximum number of snapshots of a stack, as in Heat.
MOST = 32
#: Resources after these actions keep their state: they do not exist yet, or have to be resumed first. Failed resources
#: keep theirs too: an update repairs them.
_NOT_TOUCHED = (Action.INIT, Action.SUSPEND)


def take(tx: Tx, engine: Engine, stack_id: str, name: str | None) -> Snapshot:
    """Store a snapshot of a stack. Raises ActionInProgress, NotSupported in a deletion, Invalid beyond ``MOST``."""
    session = lock_stack(tx, engine, stack_id)
    stack = session.stack
    operation.refuse_busy(stack)
    if stack.action is Action.DELETE:
        raise NotSupported(f"A snapshot of a stack in {stack.action}_{stack.status} is not supported.")
    if stacks.count_snapshots(tx, stack_id) >= MOST:
        raise Invalid(f"a stack may have {MOST} snapshots, and this one has them: delete some")
    source = stacks.source(tx, stack_id)
    present = [resource for resource in resources.of_stack(tx, stack_id) if _is_touched(resource)]
    at_cloud = {resource.id for resource in present if Action.SNAPSHOT in session.type_of(resource).actions}
    operation.begin_snapshot(session, at_cloud)
    for resource in present:
        if resource.id not in at_cloud:
            finish_action(session, begin_action(session, resource, Action.SNAPSHOT), DONE, planned=False)
    snapshot = Snapshot(
        id=str(uuid4()),
        stack_id=stack_id,
        name=name,
        status=Status.IN_PROGRESS,
        reason=session.stack.reason,
        data={**export.redacted_export(tx, stack), "source": source},
        created_at=tx.now,
    )
    stacks.add_snapshot(tx, snapshot)
    advance(session)
    commit(session)
    return stacks.get_snapshot(tx, stack_id, snapshot.id)


def _is_touched(resource: Resource) -> bool:
    return resource.current and resource.action not in _NOT_TOUCHED and resource.status is Status.COMPLETE


def delete(tx: Tx, engine: Engine, snapshot: Snapshot) -> None:
    """Delete a snapshot, and what clouds saved for it for present resources of the stack. Raises ActionInProgress."""
    saved = snapshot.data.get(SAVED) or {}
    if saved:
        session = lock_stack(tx, engine, snapshot.stack_id)
        operation.refuse_busy(session.stack)
        for name, ids in saved.items():
            resource = session.resources.find(name)
            if resource is not None and isinstance(kind := session.type_of(resource), SavesState):
                kind.delete_saved(session.context, resource, ids)
    stacks.delete_snapshot(tx, snapshot.id)


def restore(tx: Tx, engine: Engine, stack_id: str, snapshot: Snapshot) -> Stack:
    """Update the stack to the snapshot's state. Raises ActionInProgress, NotSupported."""
    if snapshot.status is not Status.COMPLETE:
        raise NotSupported(f"Snapshot {snapshot.id} is {snapshot.status}: only complete ones can be restored.")
    stack = stacks.get(tx, stack_id, for_update=True)
    operation.refuse_busy(stack)
    source = convert(snapshot.data["source"], Source)
    resolved = _with_saved(engine, prepare_again(engine, stack, source, engine.budget(tx)), snapshot)
    return operations.update(tx, engine, resolved, Options(), action=Action.RESTORE)


def _with_saved(engine: Engine, resolved: ResolvedStack, snapshot: Snapshot) -> ResolvedStack:
    """Return the stack with the properties that let clouds restore what they saved."""
    definitions = dict(resolved.definitions)
    for name, saved in (snapshot.data.get(SAVED) or {}).items():
        definition = definitions.get(name)
        kind = engine.type(definition["type"]) if definition is not None else None
        if definition is not None and isinstance(kind, SavesState) and isinstance(definition["properties"], Mapping):
            restored = kind.restored(saved)
            definitions[name] = {**definition, "properties": {**definition["properties"], **restored}}
    return replace(resolved, definitions=definitions)
