"""
The runs that an operation would start on servers, in their order, as far as they are known beforehand.

They use objects that the operation would create: contents of configs, and servers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stoker.deployments.configs import expand_known, resolve_hook
from stoker.hot import UNKNOWN
from stoker.model.config import UNGROUPED, Content
from stoker.model.deployment import UNDO
from stoker.model.errors import StokerError
from stoker.model.stack import Action, Resource, Status
from stoker.resources.base import Context, ResourceFailure
from stoker.resources.roles import ProvidesConfig, RunsConfig
from stoker.stacks.engine.decisions import ResourceChange, is_suspended
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.outline import Change, Kind, StackChanges, UnknownValue
from stoker.stacks.templates.preview import Preview
from stoker.store import servers
from stoker.types import deployment_base, deployment_runs, label_groups, nested_stacks
from stoker.types.deployment_runs import as_structured
from stoker.types.rollout import is_of_health


class Planner(Preview):
    """Plans one operation: its changes to the stacks of a tree, and the runs that it would start."""

    def find_content(self, context: Context, change: Change) -> Content:
        """
        Return what a deployment would run: the present config, or the one that the operation would create.

        Raises UnknownValue, Invalid, ResourceFailure.
        """
        change.require(["config"])
        new = self.configs.get(str(change.properties["config"]))
        if new is None:
            content = deployment_runs.content_for(context, change.properties)
        else:
            content = as_structured(self._find_new_content(new), change.properties)
        deployment_runs.check_content(content)
        return content

    def _find_new_content(self, source: Change) -> Content:
        source.require(source.properties)
        kind = self.engine.type(source.type)
        assert isinstance(kind, ProvidesConfig)
        config = expand_known(kind.declare(source.properties))
        return Content(
            name=source.name,
            group=config["group"] or UNGROUPED,
            config=config["config"],
            inputs=tuple(config["inputs"] or ()),
            outputs=tuple(config["outputs"] or ()),
            options=resolve_hook(self.tx, self.project_id, config["options"] or {}),
            facts={},
        )

    @cached_property
    def runs(self) -> Sequence[PlannedRun]:
        """The runs of the stacks of the tree, with the names of servers."""
        runs = [run for level in self.levels for run in self.plan(level)]
        names = servers.find_several(self.tx, {run.server_id for run in runs if run.server_id is not None})
        return [replace(run, server_name=names[run.server_id].name) if run.server_id in names else run for run in runs]

    @cached_property
    def digest(self) -> str:
        """
        A digest of what the operation would do: two plans with the same digest make the same changes.

        It changes with each operation of the stack. Secrets are not part of it.
        """
        changes = [
            (level.path, change.name, change.type, change.kind.value, self.show(change.properties), change.differing)
            for level in self.levels
            for change in level.changes
        ]
        runs = [(run.resource_name, run.action, run.mode, run.server_id) for run in self.runs]
        plan = self.tx.secrets.redact([self._stack.traversal, self._stack.status, changes, runs])
        return hashlib.sha256(msgspec.json.encode(plan, order="sorted")).hexdigest()[:16]

    def plan(self, level: StackChanges) -> Iterator[PlannedRun]:
        """Yield the runs: each removal before the run that takes its place, all other removals at the end."""
        context = StackSession(self.tx, self.engine, level.stack).context
        starts: list[PlannedRun] = []
        removals: list[PlannedRun] = []
        for change in level.changes:
            if not isinstance(self.engine.type(change.type), RunsConfig):
                continue
            for member in self._members(context, change, (*level.path, change.name)):
                starts.extend(member.starts())
                removals.extend(member.removals(context))
        for run in starts:
            if run.action is Action.CREATE:
                yield from [removal for removal in removals if _precedes(removal, run)]
                removals = [removal for removal in removals if not _precedes(removal, run)]
            yield run
        yield from reversed(removals)

    def _members(self, context: Context, change: Change, path: tuple[str, ...]) -> Iterator[_Member]:
        """Yield the deployment, or the members of the group."""
        content, reason = None, None
        if change.kind is not Kind.DELETED:
            try:
                content = self.find_content(context, change)
            except (UnknownValue, ResourceFailure, StokerError) as error:
                reason = str(error)
        shared = _Member(
            path="/".join(path),
            change=change,
            content=content,
            reason=reason,
            resource=change.resource,
            is_replaced=change.kind is Kind.REPLACED,
        )
        kind = self.engine.type(change.type)
        if isinstance(kind, RunsConfig) and kind.is_group:
            yield from self._group_members(context, shared)
        else:
            yield replace(shared, server=change.properties.get("server"))

    def _group_members(self, context: Context, group: _Member) -> Iterator[_Member]:
        change = group.change
        present = _present_members(context, change.resource) if change.resource else {}
        wanted: Mapping[str, Any] = {}
        if change.kind is not Kind.DELETED:
            if reason := change.explain(WHICH):
                yield replace(group, server=UNKNOWN, reason=group.reason or reason, resource=None)
                return
            wanted = label_groups.foresee(context, change.resource, change.properties)
        for name, id in wanted.items():
            member = present.get(name)
            stays = (
                change.kind is not Kind.REPLACED
                and member is not None
                and member.properties.get("server") == id
                and not self.engine.type(member.type).must_replace(context, member, change.properties)
            )
            yield replace(group, path=f"{group.path}/{name}", server=id, resource=member, is_replaced=not stays)
        for name in sorted(present.keys() - wanted.keys()):
            path = f"{group.path}/{name}"
            yield replace(group, path=path, server=None, resource=present[name])


#: The properties of a group that name its servers.
WHICH = frozenset(("servers", "labels", "selector"))


class PlannedRun(Struct, frozen=True, kw_only=True):
    """One run that an operation would start."""

    #: Names of the resources from the outermost stack to the deployment, joined by slashes.
    resource_name: str
    action: Action
    #: UNDO, or None: the run applies the config.
    mode: str | None = None
    #: None: the server is not known yet.
    server_id: str | None = None
    server_name: str | None = None
    #: The change of the deployment, or of the group that it belongs to.
    change: Change
    #: None if it is not known yet; ``reason`` states why.
    content: Content | None = None
    reason: str | None = None


class _Member(Struct, frozen=True, kw_only=True):
    """A deployment of a stack or a member of a group, with the change of the operation."""

    path: str
    change: Change
    content: Content | None
    reason: str | None
    #: The present resource of the deployment, if it exists.
    resource: Resource | None
    #: The id of the server; UNKNOWN, or None if the deployment goes.
    server: Any = None
    is_replaced: bool

    def starts(self) -> Iterator[PlannedRun]:
        """Yield the runs that bring the deployment to its definition."""
        if self.change.kind is Kind.DELETED or self.server is None:
            return
        run = PlannedRun(
            resource_name=self.path,
            action=Action.CREATE,
            server_id=self.server if isinstance(self.server, str) else None,
            change=self.change,
            content=self.content,
            reason=self.reason,
        )
        for action in self._actions():
            if self.content is None or deployment_runs.is_triggered(self.content, self.change.properties, action):
                yield replace(run, action=action)

    def _actions(self) -> Iterator[Action]:
        if self.resource is None or self.is_replaced:
            yield Action.CREATE
            return
        if is_suspended(self.resource) and self.resource.status is not Status.IN_PROGRESS:
            yield Action.RESUME
        if self._is_changed():
            yield deployment_base.choose_action(self.resource, self.content, self.change.properties)

    def _is_changed(self) -> bool:
        """Return whether CREATE or UPDATE runs on an existing deployment that stays."""
        assert self.resource is not None
        if self.change.kind is not Kind.UPDATED:
            return False
        has_failed = self.resource.status is Status.FAILED and self.resource.action is not Action.RESUME
        if has_failed:
            return True
        if self.change.change is ResourceChange.RETRY:
            return bool(self.change.differing)
        differing = set(self.change.differing) - WHICH
        return not differing.issubset(deployment_base.SETTINGS) or not self.change.differing

    def removals(self, context: Context) -> Iterator[PlannedRun]:
        """Yield the run of the deployment's removal."""
        goes = self.change.kind is Kind.DELETED or self.server is None or self.is_replaced
        if self.resource is None or not goes:
            return
        if self.resource.action is Action.DELETE and self.resource.status is Status.IN_PROGRESS:
            return
        content = deployment_runs.find_removal(context, self.resource)
        if content is None:
            return
        properties = self.resource.properties
        is_action = deployment_runs.is_triggered(content, properties, Action.DELETE)
        yield PlannedRun(
            resource_name=self.path,
            action=Action.DELETE,
            mode=None if is_action else UNDO,
            server_id=properties.get("server"),
            change=self.change,
            content=content,
        )


def _precedes(removal: PlannedRun, run: PlannedRun) -> bool:
    """Return whether the removal runs before a CREATE, which takes its place on the server."""
    if removal.server_id != run.server_id:
        return False
    contents = [None if one.content is None else (one.content.group, one.content.config) for one in (removal, run)]
    return removal.resource_name == run.resource_name or (contents[0] == contents[1] and contents[0] is not None)


def _present_members(context: Context, group: Resource) -> dict[str, Resource]:
    return {
        member.name: member
        for member in nested_stacks.list_resources(context, group)
        if member.current and not is_of_health(member.name) and member.action is not Action.INIT
    }
