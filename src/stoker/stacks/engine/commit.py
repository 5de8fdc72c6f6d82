"""Completion of a transaction on a stack: writes the session and notifies whatever waits for the stack."""

from __future__ import annotations

from functools import partial

import structlog

from stoker.model.deployment import Deployment
from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.resources import label_groups
from stoker.stacks.engine import Engine, phases
from stoker.stacks.engine.advance import wake
from stoker.stacks.engine.session import StackSession
from stoker.stacks.engine.snapshot_end import end_snapshot
from stoker.store import resources, stacks
from stoker.store.tx import Tx

_log = structlog.get_logger("stoker.stacks")


def commit(session: StackSession, *, notify_parent: bool = True) -> None:
    """
    Write a session, set its deadline and wake the parent of a nested stack.

    With ``notify_parent=False``, the resource of the nested stack checks the stack's state itself.
    """
    session.save()
    if session.ended and session.stack.parent_id is None:
        end_snapshot(session)
    phases.set_deadline(session)
    stack = session.stack
    if stack.parent_id is None and stack.deleted_at and not session.before.deleted_at:
        for grants in (session.engine.env.stack_users, session.engine.env.delegations):
            if grants is not None:
                grants.drop_stack(session.tx, stack)
    if session.ended and stack.phase is Phase.IDLE and _outlived_its_beginning(session):
        label_groups.stack_ended(session.tx, session.engine.env.work, stack.id)
    if session.ended and stack.phase is Phase.IDLE and stack.parent_id is None:
        _log_end(session)
    if stack.parent_resource_id and stack.phase is Phase.IDLE and session.ended and notify_parent:
        wake_resource(session.tx, session.engine, stack.parent_resource_id)


def _log_end(session: StackSession) -> None:
    """Log the end of an operation after the commit, without its reason, which may quote the output of scripts."""
    stack = session.stack
    write = partial(_log.warning if stack.status is Status.FAILED else _log.info, "stack.ended")
    fields = {"stack_id": stack.id, "stack": stack.name, "project_id": stack.project_id}
    session.tx.after_commit(partial(write, **fields, action=stack.action.value, status=stack.status.value))


def _outlived_its_beginning(session: StackSession) -> bool:
    """Return whether a group may wait for the operation. None can if the operation began in this transaction."""
    return not session.created and (
        session.before.status is Status.IN_PROGRESS or session.before.action is Action.SUSPEND
    )


def wake_resource(
    tx: Tx, engine: Engine, resource_id: str, failure: str | None = None, *, changed: Deployment | None = None
) -> None:
    """
    Check a resource after a report and continue its stack.

    ``failure``: why the resource can no longer succeed. ``changed``: the deployment that the report has changed.
    """
    unlocked = resources.find(tx, resource_id)
    if unlocked is None:
        return
    stack = stacks.find(tx, unlocked.stack_id, for_update=True)
    resource: Resource | None = resources.find(tx, resource_id)
    if stack is None or resource is None:
        return
    session = StackSession(tx, engine, stack)
    wake(session, resource, failure, changed)
    commit(session)
