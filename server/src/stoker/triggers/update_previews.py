"""Previews of stacks on servers: triggers with the mode PREVIEW that run what an update or a creation would run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from stoker.model.errors import StokerError
from stoker.model.stack import Action, Stack
from stoker.model.trigger import Mode, Options, Trigger
from stoker.resources.roles import RunsConfig
from stoker.servers import enrollment
from stoker.stacks.engine import Engine
from stoker.stacks.templates.outline import Change, Kind, StackChanges, UnknownValue
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store.tx import Tx
from stoker.triggers import creation
from stoker.triggers.sources import Source, TargetDefaults, with_secret_names
from stoker.triggers.targets import ResolvedTrigger
from stoker.types.deployment_runs import stack_facts
from stoker.types.planned_runs import PlannedRun, Planner

#: Previews that one request starts at most.
MOST = 200


class ServerPreview(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The preview of a deployment on its servers."""

    resource_name: Annotated[str, Meta(description="In a nested stack or group: all names from the outermost stack on")]
    action: str
    trigger_id: Annotated[str | None, Meta(description="The trigger whose runs show what would change")]
    reason: Annotated[str | None, Meta(description="Why there is no trigger")]


def start_previews(
    tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, requested_by: str, *, exists: bool = True
) -> list[ServerPreview]:
    """
    Start a PREVIEW trigger for each deployment and group that an update of ``stack``, or its creation unless it
    ``exists``, would run, at any depth. One whose values depend on results of the operation has a reason instead.
    """
    planner = Planner(tx, engine, stack, resolved, exists=exists)
    previews: list[ServerPreview] = []
    left = MOST
    for level in planner.levels:
        for (name, action), runs in _group_runs(planner, level).items():
            preview = ServerPreview(
                resource_name="/".join((*level.path, name)), action=action, trigger_id=None, reason=None
            )
            try:
                trigger = _start(planner, level, runs, requested_by, is_full=not left)
            except (UnknownValue, StokerError) as error:
                previews.append(replace(preview, reason=str(error)))
            else:
                left -= 1
                previews.append(replace(preview, trigger_id=trigger.id))
        previews += [
            ServerPreview(
                resource_name="/".join((*level.path, change.name)),
                action=Action.UPDATE if change.kind is Kind.UPDATED else Action.CREATE,
                trigger_id=None,
                reason=change.explain(change.properties),
            )
            for change in level.changes
            if _hides_deployments(level, change)
        ]
    return previews


def _group_runs(planner: Planner, level: StackChanges) -> dict[tuple[str, Action], list[PlannedRun]]:
    """Return the runs of one stack, together by the deployment or group, and the action."""
    grouped: dict[tuple[str, Action], list[PlannedRun]] = {}
    for run in planner.plan(level):
        if run.action in (Action.CREATE, Action.UPDATE):
            grouped.setdefault((run.change.name, run.action), []).append(run)
    return grouped


def _hides_deployments(level: StackChanges, change: Change) -> bool:
    """Return whether a changed nested stack with deployments is not known yet, so that no run of it is planned."""
    if change.kind in (Kind.DELETED, Kind.UNCHANGED) or change.is_certain or level.outline is None:
        return False
    resource = level.outline.resources[change.name]
    inside = None if isinstance(resource.type, RunsConfig) else resource.inside
    return inside is not None and any(isinstance(below.type, RunsConfig) for below in inside.list_all())


def _start(
    planner: Planner, level: StackChanges, runs: Sequence[PlannedRun], requested_by: str, *, is_full: bool
) -> Trigger:
    """Start the preview of a deployment's run, or of the runs of a group. Raises UnknownValue and as a trigger does."""
    tx, stack, change, content = planner.tx, level.stack, runs[0].change, runs[0].content
    if content is None:
        raise UnknownValue(runs[0].reason or "unknown until applied")
    if any(run.server_id is None for run in runs):
        change.require(["server"])
        raise UnknownValue(runs[0].reason or "the server is unknown until applied")
    servers = enrollment.find_all(tx, stack.project_id, [str(run.server_id) for run in runs])
    if is_full:
        raise UnknownValue(f"a request previews at most {MOST} deployments and groups")
    change.require(["input_values"])
    properties = change.properties
    values, name = properties.get("input_values") or {}, properties.get("name") or content.name or change.name
    source = Source(
        content=replace(content, facts=stack_facts(stack.name, stack.id, change.name, {})),
        name=name,
        input_values=values,
        view={"stack": stack.name, "stack_id": level.existing_id, "resource": change.name},
        stack_id=level.existing_id,
        timeout=properties.get("timeout"),
    )
    targets = [(server, TargetDefaults(server_id=server.id, name=name, input_values=values)) for server in servers]
    source = with_secret_names(tx, source)
    resolved = ResolvedTrigger(source=source, action=runs[0].action, targets=targets, input_values={})
    options = Options(mode=Mode.PREVIEW)
    return creation.start(tx, planner.engine, stack.project_id, resolved, options, name=name, requested_by=requested_by)
