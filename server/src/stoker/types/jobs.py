"""Jobs of stacks, of their deployments, and of resource types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from stoker.deployments import drift, run_end, server_runs
from stoker.deployments.checks import REMEDIATE
from stoker.deployments.run_end import DEADLINE as DEPLOYMENT_DEADLINE
from stoker.model.stack import Phase
from stoker.model.wake import Owner
from stoker.policy import authorizer
from stoker.resources.base import WAKE
from stoker.stacks import operations, repetition
from stoker.stacks.engine import ADVANCE, DEADLINE, REFRESH, Engine
from stoker.stacks.engine.progress import advance, commit
from stoker.stacks.engine.session import StackSession
from stoker.store import stacks
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.types import label_groups, publishing
from stoker.types.label_groups import REFRESH_DEADLINE
from stoker.types.remote_stack import REMOTE, RemoteStacks
from stoker.types.server_base import PUBLISH

Args = Mapping[str, Any]


def register(store: Store, engine: Engine) -> None:
    """Register the handlers of the jobs that the engine and resource types defer."""

    def doing(do: Callable[[Tx, Engine, Args], None], *, background: bool = False) -> Callable[[Args], None]:
        return lambda args: store.write(lambda tx: do(tx, engine, args), background=background)

    work = engine.env.work
    work.register(ADVANCE, doing(go_on, background=True))
    work.register(DEADLINE, doing(time_out_stack))
    work.register(DEPLOYMENT_DEADLINE, doing(lambda tx, engine, args: run_end.expire(tx, engine.env, args)))
    work.register(REMEDIATE, doing(lambda tx, engine, args: drift.remediate(tx, engine.env, args)))
    work.register(server_runs.RERUN, lambda args: run_again(store, engine, args))
    work.register(authorizer.WINDOW_JOB, doing(lambda tx, _, args: server_runs.reevaluate(tx, work, args["server_id"])))
    work.register(WAKE, doing(lambda tx, _, args: tx.wake(Owner.resource(args["resource_id"]))))
    work.register(REMOTE, RemoteStacks(store, engine).go_on)
    work.register(PUBLISH, doing(publishing.publish))
    work.register(REFRESH, doing(label_groups.refresh_members))
    work.register(REFRESH_DEADLINE, doing(label_groups.time_out))


def run_again(store: Store, engine: Engine, args: Args) -> None:
    """Job: run again what an enrolled server's earlier machine had completed."""
    repetition.create_again(store, engine, args["server_id"], args["until"])
    server_runs.rerun(store, engine.env, args)


def go_on(tx: Tx, engine: Engine, args: Args) -> None:
    """Job: continue a plan that exceeded the limit of one transaction."""
    session = _current(tx, engine, args)
    if session is None:
        return
    limit = engine.limits.steps_per_transaction
    session.todo.extend(session.plan.ready(limit + 1))
    advance(session)
    commit(session)


def time_out_stack(tx: Tx, engine: Engine, args: Args) -> None:
    """
    Job: abort an operation whose deadline has passed. Without ``timeout_mins`` of its own, the deadline moves while
    runs wait for their first maintenance window.
    """
    session = _current(tx, engine, args)
    if session is None:
        return
    opening = None if session.stack.timeout_mins else authorizer.first_opening(tx, session.stack.id)
    if opening is not None:
        at = opening + timedelta(seconds=engine.limits.action_timeout)
        engine.env.work.defer(tx, DEADLINE, session.stack.id, args, at=at)
    else:
        operations.abort_operation(session, "Timed out", "timed out")
        commit(session)


def _current(tx: Tx, engine: Engine, args: Args) -> StackSession | None:
    """Return a session of the stack if the operation for which the job was deferred is still in progress."""
    stack = stacks.find(tx, args["stack_id"], for_update=True)
    if stack is None or stack.traversal != args["traversal"] or stack.phase is Phase.IDLE:
        return None
    return StackSession(tx, engine, stack)
