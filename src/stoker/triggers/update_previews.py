"""Previews of stacks on servers: triggers with the mode PREVIEW that run what an update or a creation would run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from stoker.deployments.configs import content_of
from stoker.deployments.hook_delivery import resolve_hook
from stoker.hot import UNKNOWN, weigh
from stoker.model.config import COMPONENT, UNGROUPED
from stoker.model.errors import StokerError
from stoker.model.secrets import contains_secret
from stoker.model.server import Server
from stoker.model.stack import Stack
from stoker.model.status import Action
from stoker.model.trigger import Content, Mode, Options, Target, Trigger
from stoker.resources import label_groups, software_config
from stoker.resources.deployment_runs import as_structured, is_triggered
from stoker.servers import enrollment
from stoker.stacks import type_names
from stoker.stacks.engine import Engine
from stoker.stacks.policy_precheck import STANDS_FOR
from stoker.stacks.templates.outline import OutlinedResource
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.stacks.templates.preview import Change, Kind
from stoker.stacks.templates.preview_nested import StackChanges, list_tree_changes
from stoker.store import configs, server_lists, servers
from stoker.store.tx import Tx
from stoker.triggers import lifecycle

#: Previews that one request starts at most.
MOST = 200
_ACTIONS = {Kind.ADDED: Action.CREATE, Kind.REPLACED: Action.CREATE, Kind.UPDATED: Action.UPDATE}
_CALLS = ("get_attr", "get_resource")
#: The properties of a group that name its servers.
_WHICH = frozenset(("servers", "labels", "selector"))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePreview:
    """The preview of one deployment, or why it is not possible."""

    #: In a nested stack or group: the names of the resources around the deployment and its own, joined by slashes.
    resource_name: str
    action: str
    trigger_id: str | None = None
    reason: str | None = None


class _Unknown(Exception):
    """A value of the deployment is unknown until the update is applied."""


def start_previews(
    tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, requested_by: str, *, exists: bool = True
) -> list[UpdatePreview]:
    """
    Start a PREVIEW trigger for each deployment and group of deployments that the stack would run, at any depth.

    ``exists``: whether ``stack`` exists and would be updated; otherwise it would be created. A deployment whose values
    depend on results of the operation is not started; its reason names them.
    """
    new = _NewObjects(tx, engine, stack.project_id)
    started: list[UpdatePreview] = []
    for level in list_tree_changes(tx, engine, stack, resolved, exists=exists, references=new.refer):
        previews = _Previews(tx, engine, level, {change.name: change for change in level.changes}, new, requested_by)
        for change in level.changes:
            is_full = sum(preview.trigger_id is not None for preview in started) >= MOST
            preview = previews.start(change, is_full=is_full)
            if preview is not None:
                started.append(preview)
    return started


@dataclass(frozen=True, slots=True)
class _NewObjects:
    """References to resources that do not exist yet, as far as a preview on servers needs them."""

    tx: Tx
    engine: Engine
    project_id: str
    #: By the id that stands for a new config: the changes to its stack, and its own.
    configs: dict[str, tuple[Mapping[str, Change], Change]] = field(default_factory=dict)

    def refer(self, change: Change, changes: Mapping[str, Change]) -> Any:
        """Return an id that stands for a new config, or the id of the enrolled server that a resource represents."""
        kind = self.engine.type(change.type).name
        if kind in type_names.CONFIGS | type_names.COMPONENTS:
            return self._stand_for(change, changes)
        name = change.evaluated.get("name")
        if kind != STANDS_FOR or change.kind is not Kind.ADDED or not isinstance(name, str):
            return UNKNOWN
        enrolled = servers.find_enrolled(self.tx, name, self.project_id)
        return enrolled.id if enrolled else UNKNOWN

    def _stand_for(self, change: Change, changes: Mapping[str, Change]) -> str:
        for id, (_, source) in self.configs.items():
            if source is change:
                return id
        id = str(uuid4())
        self.configs[id] = (changes, change)
        return id


@dataclass(frozen=True, slots=True)
class _Previews:
    """Starts the previews of one stack of the tree."""

    tx: Tx
    engine: Engine
    level: StackChanges
    changes: Mapping[str, Change]
    new: _NewObjects
    requested_by: str

    @property
    def stack(self) -> Stack:
        return self.level.stack

    def start(self, change: Change, *, is_full: bool) -> UpdatePreview | None:
        """Start the preview of one resource. Return None if the operation runs nothing for it."""
        action = _ACTIONS.get(change.kind)
        kind = self.engine.type(change.type).name if action is not None else ""
        if action is None:
            return None
        if kind not in type_names.DEPLOYMENTS | type_names.GROUPS:
            outlined = self.level.outline.get(change.name)
            if change.certain or outlined is None or not _has_deployments(outlined):
                return None  # the preview looks into the resource, or there is nothing in it to run
        name = "/".join((*self.level.path, change.name))
        try:
            trigger = self._start_deployment(change, action, kind, is_full=is_full)
        except (_Unknown, StokerError) as error:
            return UpdatePreview(resource_name=name, action=action, reason=str(error))
        return UpdatePreview(resource_name=name, action=trigger.action, trigger_id=trigger.id) if trigger else None

    def _start_deployment(self, change: Change, action: Action, kind: str, *, is_full: bool) -> Trigger | None:
        if kind not in type_names.DEPLOYMENTS | type_names.GROUPS:
            for name in change.evaluated:
                self._require(change, name)
            raise _Unknown("its properties are unknown until applied")
        content = self._content(change)
        if kind in type_names.GROUPS:
            targets, action = self._group_servers(change, action)
        else:
            self._require(change, "server")
            targets = [enrollment.find(self.tx, self.stack.project_id, str(change.evaluated["server"]))]
        if not targets or not is_triggered(content, change.evaluated, action):
            return None
        if is_full:
            raise _Unknown(f"a request previews at most {MOST} deployments and groups")
        return self._start(change, action, content, targets)

    def _content(self, change: Change) -> Content:
        """Return what the deployment would run: the present config, or the one that the operation would create."""
        self._require(change, "config")
        id = change.evaluated.get("config")
        if id in self.new.configs:
            content = self._new_content(*self.new.configs[id])
        else:
            config = configs.get(self.tx, id, self.stack.project_id) if id else None
            content = content_of(config) if config else _content(change.name, UNGROUPED, "", {})
        return as_structured(content, change.evaluated)

    def _new_content(self, changes: Mapping[str, Change], source: Change) -> Content:
        for name in source.evaluated:
            _require(changes, source, name)
        properties = software_config.expand(source.evaluated)
        options = resolve_hook(self.tx, self.stack.project_id, properties.get("options") or {})
        properties = {**properties, "options": options}
        if self.engine.type(source.type).name in type_names.COMPONENTS:
            return _content(source.name, COMPONENT, {"configs": properties["configs"]}, properties)
        return _content(source.name, properties["group"] or UNGROUPED, properties["config"], properties)

    def _group_servers(self, change: Change, action: Action) -> tuple[list[Server], Action]:
        """Return the servers on which a group would run, and the action that the runs have."""
        for name in _WHICH:
            self._require(change, name)
        selector = label_groups.selector_of(change.evaluated)
        project_id = self.stack.project_id
        if selector is not None:
            wanted = server_lists.find_by_selector(self.tx, project_id, selector)
        else:
            ids = (change.evaluated.get("servers") or {}).values()
            wanted = [enrollment.find(self.tx, project_id, str(id)) for id in ids]
        if change.resource is None or change.kind is not Kind.UPDATED or not _WHICH.issuperset(change.differing):
            return wanted, action
        # Only the servers differ, so members of the present servers do not run again. A group that failed is retried.
        if not change.differing:
            return wanted, action
        present = set(label_groups.members(change.resource, change.resource.properties).values())
        return [server for server in wanted if server.id not in present], Action.CREATE

    def _start(self, change: Change, action: Action, content: Content, servers: Sequence[Server]) -> Trigger:
        self._require(change, "input_values")
        values = change.evaluated.get("input_values") or {}
        secrets = self.tx.secrets.texts
        facts = {"deploy_stack_id": f"{self.stack.name}/{self.stack.id}", "deploy_resource_name": change.name}
        marked = [entry["name"] for entry in content.inputs if entry.get("secret")]
        id, name = str(uuid4()), change.evaluated.get("name") or content.name or change.name
        targets = [
            Target(
                trigger_id=id,
                position=position,
                server_id=server.id,
                server_name=server.name,
                name=name,
                input_values=values,
            )
            for position, server in enumerate(servers)
        ]
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
                timeout=change.evaluated.get("timeout"),
                secret=tuple({*marked, *(name for name in values if contains_secret(values[name], secrets))}),
            ),
            requested_by=self.requested_by,
            total=len(targets),
            queued=len(targets),
            created_at=self.tx.now,
        )
        return lifecycle.start(self.tx, self.engine.env, trigger, replace(content, facts=facts), targets)

    def _require(self, change: Change, name: str) -> None:
        _require(self.changes, change, name)


def _require(changes: Mapping[str, Change], change: Change, name: str) -> None:
    """Raise _Unknown with the results on which an unknown property depends. ``changes`` are those of its stack."""
    if not weigh(change.evaluated.get(name))[1]:
        return
    written = change.definition["properties"].get(name)
    places = ((place, changes.get(place.partition(".")[0])) for place in _references(written))
    unapplied = {place for place, source in places if source is not None and source.kind is not Kind.UNCHANGED}
    what = ", ".join(sorted(unapplied)) or "results of the operation"
    raise _Unknown(f"{name} depends on {what}, unknown until applied")


def _has_deployments(resource: OutlinedResource) -> bool:
    if resource.type.name in type_names.DEPLOYMENTS | type_names.GROUPS:
        return True
    return resource.inside is not None and any(map(_has_deployments, resource.inside.resources.values()))


def _content(name: str, group: str, config: Any, properties: Mapping[str, Any]) -> Content:
    return Content(
        name=name,
        group=group,
        config=config,
        inputs=tuple(properties.get("inputs") or ()),
        outputs=tuple(properties.get("outputs") or ()),
        options=properties.get("options") or {},
        facts={},
    )


def _references(written: Any) -> Iterator[str]:
    """Yield ``resource.attribute``, or ``resource``, for each reference in a value of a template."""
    if isinstance(written, Mapping):
        for call in _CALLS:
            argument = written.get(call)
            if isinstance(argument, str):
                yield argument
            elif isinstance(argument, list) and argument and isinstance(argument[0], str):
                yield ".".join(str(part) for part in argument[:2])
        for value in written.values():
            yield from _references(value)
    elif isinstance(written, list):
        for item in written:
            yield from _references(item)
