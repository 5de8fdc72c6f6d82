"""What wakes stacks besides signals: passed deadlines, and plans too large for one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from stoker.deployments import manage, windows
from stoker.deployments.deadlines import DEADLINE as DEPLOYMENT_DEADLINE
from stoker.deployments.triggers import GO_ON as TRIGGER_GO_ON
from stoker.model.stack import Phase
from stoker.resources.base import WAKE
from stoker.resources.remote_stack import REMOTE
from stoker.resources.selecting import REGROUP
from stoker.resources.serving import PUBLISH
from stoker.stacks import operations, scheduling, signals, triggering
from stoker.stacks.advance import advance
from stoker.stacks.closing import close, wake_resource
from stoker.stacks.engine import ADVANCE, DEADLINE, Engine
from stoker.stacks.publishing import plan, publish
from stoker.stacks.remote import RemoteStacks
from stoker.stacks.selecting import REGROUP_DEADLINE, labels_changed, regroup, time_out
from stoker.stacks.transition import Transition
from stoker.store import deployments, stacks
from stoker.store.open import Store
from stoker.store.tx import Tx

Args = Mapping[str, Any]


def register(store: Store, engine: Engine) -> None:
    """Tell the engine's work who does these jobs."""

    def doing(do: Callable[[Tx, Engine, Args], None]) -> Callable[[Args], None]:
        return lambda args: store.write(lambda tx: do(tx, engine, args))

    engine.services.work.register(ADVANCE, doing(go_on))
    engine.services.work.register(DEADLINE, doing(time_out_stack))
    engine.services.work.register(DEPLOYMENT_DEADLINE, doing(time_out_deployment))
    engine.services.work.register(
        windows.JOB, doing(lambda tx, engine, args: windows.reconsider(tx, engine.services.work, args["server_id"]))
    )
    engine.services.work.register(TRIGGER_GO_ON, doing(triggering.go_on))
    scheduling.register(store, engine)
    engine.services.work.register(REMOTE, RemoteStacks(store, engine).go_on)
    engine.services.work.register(PUBLISH, doing(publish))
    store.on_carried_change(lambda tx, server_id, resource_id: plan(tx, engine, server_id, resource_id))
    store.on_labels_changed(lambda tx, changed: labels_changed(tx, engine, changed))
    engine.services.work.register(REGROUP, doing(regroup))
    engine.services.work.register(REGROUP_DEADLINE, doing(time_out))
    engine.services.work.register(WAKE, doing(lambda tx, engine, args: wake_resource(tx, engine, args["resource_id"])))


def go_on(tx: Tx, engine: Engine, args: Args) -> None:
    transition = _current(tx, engine, args)
    if transition is None:
        return
    limit = engine.limits.steps_per_transaction
    transition.todo.extend(transition.plan.ready(limit + 1))
    advance(transition)
    close(transition)


def time_out_stack(tx: Tx, engine: Engine, args: Args) -> None:
    """The operation failed; what it still waited for is given up. Unless that is a window, and nobody set a time."""
    transition = _current(tx, engine, args)
    if transition is None:
        return
    opening = None if transition.stack.timeout_mins else windows.first_opening(tx, transition.stack.id)
    if opening is not None:
        at = opening + timedelta(seconds=engine.limits.action_timeout)
        engine.services.work.defer(tx, DEADLINE, transition.stack.id, args, at=at)
    else:
        operations.give_up(transition, "Timed out", "timed out")
        close(transition)


def time_out_deployment(tx: Tx, engine: Engine, args: Args) -> None:
    known = deployments.find(tx, args["deployment_id"])
    deployment = signals.hold(tx, known) if known else None
    if deployment is None or deployment.config_id != args["config_id"]:
        return
    ended = manage.fail(tx, deployment, args.get("reason") or f"Timed out: {deployment.status_reason}")
    if ended is not deployment:
        signals.report(tx, engine, ended, before=deployment)


def _current(tx: Tx, engine: Engine, args: Args) -> Transition | None:
    """The stack, when it is still busy with the operation the job was deferred for."""
    stack = stacks.find(tx, args["stack_id"], hold=True)
    if stack is None or stack.traversal != args["traversal"] or stack.phase is Phase.IDLE:
        return None
    return Transition(tx, engine, stack)
