"""Previews of stacks on servers: triggers with the mode PREVIEW that run what an update or a creation would run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from stoker.model.errors import StokerError
from stoker.model.server import Server
from stoker.model.stack import Action, Stack
from stoker.model.trigger import Content, Mode, Options, Trigger
from stoker.resources.roles import RunsConfig
from stoker.servers import enrollment
from stoker.stacks.engine import Engine
from stoker.stacks.templates.outline import Change, Kind, StackChanges, UnknownValue
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store.tx import Tx
from stoker.triggers import lifecycle
from stoker.triggers.creation import new_targets
from stoker.triggers.sources import TargetDefaults
from stoker.types.planned_runs import PlannedRun, Planner

#: Previews that one request starts at most.
MOST = 200


class UpdatePreview(Struct, frozen=True, kw_only=True):
    """The preview of one deployment, or why it is not possible."""

    #: In a nested stack or group: the names of the resources around the deployment and its own, joined by slashes.
    resource_name: str
    action: str
    trigger_id: str | None = None
    reason: str | None = None


def start_previews(
    tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, requested_by: str, *, exists: bool = True
) -> list[UpdatePreview]:
    """
    Start a PREVIEW trigger for each deployment and group that an update of ``stack``, or its creation unless it
    ``exists``, would run, at any depth. One whose values depend on results of the operation has a reason instead.
    """
    planner = Planner(tx, engine, stack, resolved, exists=exists)
    started: list[UpdatePreview] = []
    for level in planner.levels:
        most = MOST - sum(each.trigger_id is not None for each in started)
        started.extend(_Previews(planner, level, requested_by).start_all(most))
    return started


@dataclass(frozen=True, slots=True)
class _Previews:
    """Starts the previews of one stack of the tree."""

    planner: Planner
    level: StackChanges
    requested_by: str

    @property
    def stack(self) -> Stack:
        return self.level.stack

    def start_all(self, most: int) -> Iterator[UpdatePreview]:
        """Start at most ``most`` previews. Yield one for each action that a deployment or group would run."""
        planned: dict[tuple[str, Action], list[PlannedRun]] = {}
        for run in self.planner.plan(self.level):
            if run.action in (Action.CREATE, Action.UPDATE):
                planned.setdefault((run.change.name, run.action), []).append(run)
        for (name, action), runs in planned.items():
            try:
                trigger = self._start_change(runs, is_full=most <= 0)
            except (UnknownValue, StokerError) as error:
                yield self._preview(name, action, reason=str(error))
            else:
                most -= 1
                yield self._preview(name, action, trigger_id=trigger.id)
        for change in self.level.changes:
            if self._hides_deployments(change):
                action = Action.UPDATE if change.kind is Kind.UPDATED else Action.CREATE
                yield self._preview(change.name, action, reason=change.explain(change.properties))

    def _preview(
        self, name: str, action: Action, *, trigger_id: str | None = None, reason: str | None = None
    ) -> UpdatePreview:
        path = "/".join((*self.level.path, name))
        return UpdatePreview(resource_name=path, action=action, trigger_id=trigger_id, reason=reason)

    def _hides_deployments(self, change: Change) -> bool:
        """Return whether a changed nested stack with deployments is not known yet, so that no run of it is planned."""
        if change.kind in (Kind.DELETED, Kind.UNCHANGED) or change.is_certain or self.level.outline is None:
            return False
        resource = self.level.outline.resources[change.name]
        inside = None if isinstance(resource.type, RunsConfig) else resource.inside
        return inside is not None and any(isinstance(below.type, RunsConfig) for below in inside.list_all())

    def _start_change(self, runs: Sequence[PlannedRun], *, is_full: bool) -> Trigger:
        """Start the preview of a deployment's run, or of the runs of a group."""
        change, content = runs[0].change, runs[0].content
        if content is None:
            raise UnknownValue(runs[0].reason or "unknown until applied")
        if any(run.server_id is None for run in runs):
            change.require(["server"])
            raise UnknownValue(runs[0].reason or "the server is unknown until applied")
        targets = [enrollment.find(self.planner.tx, self.stack.project_id, str(run.server_id)) for run in runs]
        if is_full:
            raise UnknownValue(f"a request previews at most {MOST} deployments and groups")
        return self._start(change, runs[0].action, content, targets)

    def _start(self, change: Change, action: Action, content: Content, servers: Sequence[Server]) -> Trigger:
        change.require(["input_values"])
        values = change.properties.get("input_values") or {}
        facts = {"deploy_stack_id": f"{self.stack.name}/{self.stack.id}", "deploy_resource_name": change.name}
        marked = [entry["name"] for entry in content.inputs if entry.get("secret")]
        tx = self.planner.tx
        id, name = str(uuid4()), change.properties.get("name") or content.name or change.name
        resolved = [(server, TargetDefaults(server_id=server.id, name=name, input_values=values)) for server in servers]
        trigger = Trigger(
            id=id,
            project_id=self.stack.project_id,
            name=name,
            action=action,
            source={"stack": self.stack.name, "stack_id": self.level.existing_id, "resource": change.name},
            stack_id=self.level.existing_id,
            input_values={},
            options=Options(
                mode=Mode.PREVIEW,
                timeout=change.properties.get("timeout"),
                secret=tuple({*marked, *(name for name in values if tx.secrets.contain(values[name]))}),
            ),
            requested_by=self.requested_by,
            created_at=tx.now,
        )
        return lifecycle.start(
            tx,
            self.planner.engine.env,
            trigger,
            replace(content, facts=facts),
            new_targets(id, resolved, [name] * len(resolved)),
        )
