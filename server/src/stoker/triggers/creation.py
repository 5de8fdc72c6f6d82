"""Creation of triggers, as users and schedules request them, and their retry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

from msgspec.structs import replace

from stoker.deployments.run_plan import RunRequest, check_request
from stoker.hot.words import list_few
from stoker.model.config import UNGROUPED, Content, find_delivered_hook, needed_groups
from stoker.model.errors import Conflict, DeploymentRefused, EntityNotFound, Invalid, StokerError
from stoker.model.stack import Stack
from stoker.model.trigger import Mode, Options, Schedule, Target, TargetStatus, Trigger, TriggerStatus
from stoker.policy.authorizer import AuthorizationRequest
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.store import deployments, resources, targets
from stoker.store import triggers as stored
from stoker.store.tx import Tx, check_limit
from stoker.triggers import lifecycle
from stoker.triggers.request import SOURCE_KEYS, TriggerRequest
from stoker.triggers.sources import Source, find_stack
from stoker.triggers.targets import TRIGGER, ResolvedTrigger, resolve

_LONGEST = 255
#: Content of a trigger that never started and therefore runs nothing.
_NO_CONTENT = Content(name=None, group=UNGROUPED, config=None, options={}, facts={})
_AGAIN = (TargetStatus.FAILED, TargetStatus.CANCELLED)


def create(
    tx: Tx,
    engine: Engine,
    project_id: str,
    request: TriggerRequest,
    *,
    requested_by: str | None,
    schedule_id: str | None = None,
) -> Trigger:
    """
    Resolve, check and start a trigger.

    Raises EntityNotFound, Invalid, Conflict, DeploymentRefused or RequestLimitExceeded; then nothing has started.
    """
    resolved = resolve(tx, engine, project_id, request)
    check(tx, engine, resolved, request)
    _refuse_if_all(_list_denials(tx, engine, project_id, resolved, requested_by))
    _refuse_if_all(_list_missing_hooks(project_id, resolved))
    options = Options(
        mode=request.mode or Mode.APPLY,
        signal_transport=request.signal_transport,
        timeout=request.timeout,
        max_concurrent=request.max_concurrent,
        max_fail_percentage=100 if request.max_fail_percentage is None else request.max_fail_percentage,
        canary=request.canary,
        require_window=bool(request.require_window),
    )
    name = request.name
    return start(
        tx, engine, project_id, resolved, options, name=name, requested_by=requested_by, schedule_id=schedule_id
    )


def start(
    tx: Tx,
    engine: Engine,
    project_id: str,
    resolved: ResolvedTrigger,
    options: Options,
    *,
    name: str | None,
    requested_by: str | None,
    schedule_id: str | None = None,
) -> Trigger:
    """
    Start a trigger that was resolved and checked, with ``options`` of the request. ``name``: that of the trigger and
    its deployments; None: those of their source, with the action. Raises RequestLimitExceeded.
    """
    source, action, id = resolved.source, resolved.action, str(uuid4())
    targets = [
        Target(
            trigger_id=id,
            position=position,
            server_id=server.id,
            server_name=server.name,
            name=name or _deployment_name(own.name, action),
            input_values=own.input_values,
            resource_name=own.resource_name,
        )
        for position, (server, own) in enumerate(resolved.targets)
    ]
    trigger = Trigger(
        id=id,
        project_id=project_id,
        name=name or _deployment_name(source.view.get("resource") or source.name, action),
        action=action,
        source=source.view,
        stack_id=source.stack_id,
        input_values=resolved.input_values,
        options=replace(options, timeout=options.timeout or source.timeout, secret=secret_of(source)),
        requested_by=requested_by,
        schedule_id=schedule_id,
        created_at=tx.now,
    )
    return _start(tx, engine, trigger, source.content, targets)


def record_failure(tx: Tx, engine: Engine, schedule: Schedule, reason: str) -> Trigger:
    """Store a FAILED trigger for a time at which nothing could start, with an event of the schedule's stack."""
    body, project_id = schedule.body, schedule.project_id
    source = {name: body[name] for name in SOURCE_KEYS if body.get(name) is not None}
    stack = _stack_of(tx, project_id, body.get("stack"))
    trigger = Trigger(
        id=str(uuid4()),
        project_id=project_id,
        name=body.get("name") or schedule.name,
        action=body.get("action") or TRIGGER,
        source=source,
        stack_id=stack.id if stack else None,
        input_values=body.get("input_values") or {},
        options=Options(secret=schedule.secret),
        requested_by=schedule.requested_by,
        schedule_id=schedule.id,
        status=TriggerStatus.FAILED,
        status_reason=reason,
        created_at=tx.now,
        ended_at=tx.now,
    )
    stored.add(tx, trigger, _NO_CONTENT, ())
    resource = resources.find_by_name(tx, stack.id, body.get("resource") or "") if stack else None
    if stack is not None and resource is not None:
        words = f"Schedule {schedule.name} could not start: {reason}"
        StackSession(tx, engine, stack).record(resource, signal=words)
    return trigger


def _stack_of(tx: Tx, project_id: str, name_or_id: str | None) -> Stack | None:
    try:
        return find_stack(tx, project_id, name_or_id) if name_or_id else None
    except EntityNotFound:
        return None


def check(tx: Tx, engine: Engine, resolved: ResolvedTrigger, request: TriggerRequest) -> None:
    """Check for errors that would prevent every run, before any run starts. Raises Invalid."""
    content = resolved.source.content
    if request.require_window:
        _check_windows(resolved)
    if request.mode is Mode.PREVIEW:
        reasons = (lifecycle.preview_problem(server) for server, _ in resolved.targets)
        _refuse_if_all(Invalid(f"mode PREVIEW: {reason}") if reason else None for reason in reasons)
    for server, own in resolved.targets:
        run_request = RunRequest(
            content=content,
            action=resolved.action,
            name=own.name,
            project_id=server.project_id,
            server_id=server.id,
            input_values={**own.input_values, **resolved.input_values},
            signal_transport=request.signal_transport,
            timeout=request.timeout or resolved.source.timeout,
        )
        check_request(tx, engine.env, run_request)
        if content.input_key is None:
            break  # all servers get the same content


def _refuse_if_all(problems: Iterable[StokerError | None]) -> None:
    """Raise the first of the servers' problems if every server has one. Otherwise, single runs fail on their own."""
    first: StokerError | None = None
    for problem in problems:
        if problem is None:
            return
        first = first or problem
    if first is not None:
        raise first


def _list_denials(
    tx: Tx, engine: Engine, project_id: str, resolved: ResolvedTrigger, actor: str | None
) -> Iterator[DeploymentRefused | None]:
    for server, _ in resolved.targets:
        authorization = AuthorizationRequest(
            project_id=project_id,
            server_id=server.id,
            action=f"run {resolved.action}",
            group=resolved.source.content.group,
            hook=find_delivered_hook(resolved.source.content.options),
            stack_id=resolved.source.stack_id,
            actor=actor,
        )
        yield engine.env.authorizer.check(tx, authorization)


def _list_missing_hooks(project_id: str, resolved: ResolvedTrigger) -> Iterator[Conflict | None]:
    content = resolved.source.content
    groups = needed_groups(content.group, content.config, content.options, (resolved.action,))
    for server, _ in resolved.targets:
        reason = server.describe_missing_hook(groups, project_id)
        yield Conflict(f"The {reason}.") if reason else None


def _check_windows(resolved: ResolvedTrigger) -> None:
    """Raise Invalid if a server has no maintenance window: its run would start immediately instead of waiting."""
    without = [server.name for server, _ in resolved.targets if not lifecycle.has_windows(server)]
    if without:
        names = list_few(without, 3)
        raise Invalid(
            f"require_window: no maintenance window on {names}: have a policy give one, or leave require_window out"
        )


def retry(tx: Tx, engine: Engine, trigger: Trigger, *, only_failed: bool, requested_by: str) -> Trigger:
    """
    Start a new trigger with the same content where it failed or did not run (``only_failed``), or everywhere. Raises
    Conflict, Invalid.
    """
    if trigger.status == TriggerStatus.IN_PROGRESS:
        raise Conflict(f"The trigger ({trigger.id}) is under way: wait for its end, or cancel it first.")
    id = str(uuid4())
    if not trigger.total:
        raise Conflict(f"The trigger ({trigger.id}) could not start ({trigger.status_reason}): begin a new one.")
    retried = [target for target in targets.of_trigger(tx, trigger.id) if not only_failed or target.status in _AGAIN]
    if not retried:
        raise Conflict(
            f"Nothing of the trigger ({trigger.id}) failed or was cancelled: run all of it again with --all"
            " (only_failed: false)."
        )
    new_targets = [
        Target(
            trigger_id=id,
            position=position,
            server_id=target.server_id,
            server_name=target.server_name,
            name=target.name,
            input_values=target.input_values,
            resource_name=target.resource_name,
        )
        for position, target in enumerate(retried)
    ]
    new = Trigger(
        id=id,
        project_id=trigger.project_id,
        name=trigger.name,
        action=trigger.action,
        source={**trigger.source, "retry_of": trigger.id},
        stack_id=trigger.stack_id,
        input_values=trigger.input_values,
        options=replace(trigger.options, stopped=None, stopped_by=None, forced=False, replaced_by=None),
        requested_by=requested_by,
        created_at=tx.now,
    )
    return _start(tx, engine, new, stored.content(tx, trigger.id), new_targets)


def _deployment_name(name: str, action: str) -> str:
    """Return a deployment's name with the action, which distinguishes it from the original; only the name is cut."""
    return f"{name[: max(0, _LONGEST - 1 - len(action))]}_{action}"[-_LONGEST:]


def secret_of(source: Source) -> tuple[str, ...]:
    """Return the names of inputs whose values are secret."""
    return (*source.secret, *(entry["name"] for entry in source.content.inputs if entry.get("secret")))


def _start(tx: Tx, engine: Engine, trigger: Trigger, content: Content, targets: Sequence[Target]) -> Trigger:
    limit, project_id = engine.limits.deployments_per_project, trigger.project_id
    check_limit(tx, "deployments", project_id, limit, lambda: deployments.count(tx, project_id), new=len(targets))
    return lifecycle.start(tx, engine.env, trigger, content, targets)
