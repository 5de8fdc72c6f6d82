"""Previews of an update on servers: triggers with the mode PREVIEW that run what the update would run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from stoker.deployments.configs import content_of
from stoker.hot import weigh
from stoker.model.config import COMPONENT, UNGROUPED
from stoker.model.errors import StokerError
from stoker.model.secrets import contains_secret
from stoker.model.server import Server
from stoker.model.stack import Stack
from stoker.model.status import Action
from stoker.model.trigger import Content, Mode, Options, Target, Trigger
from stoker.resources.deployment_runs import as_structured, is_triggered
from stoker.servers import enrollment
from stoker.stacks import type_names
from stoker.stacks.engine import Engine
from stoker.stacks.templates.preview import Change, Kind
from stoker.store import configs
from stoker.store.tx import Tx
from stoker.triggers import lifecycle

_ACTIONS = {Kind.ADDED: Action.CREATE, Kind.REPLACED: Action.CREATE, Kind.UPDATED: Action.UPDATE}
_CALLS = ("get_attr", "get_resource")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePreview:
    """The preview of one deployment, or why it is not possible."""

    resource_name: str
    action: str
    trigger_id: str | None = None
    reason: str | None = None


class _Unknown(Exception):
    """A value of the deployment is unknown until the update is applied."""


def start_previews(
    tx: Tx, engine: Engine, stack: Stack, changes: Sequence[Change], requested_by: str
) -> list[UpdatePreview]:
    """
    Start a PREVIEW trigger for each deployment and group of deployments that the update would run.

    ``changes`` are those of ``preview.changes``. A deployment whose values depend on results of the update is not
    started; its reason names them.
    """
    previews = _Previews(tx, engine, stack, {change.name: change for change in changes}, requested_by)
    return [preview for change in changes if (preview := previews.start(change)) is not None]


@dataclass(frozen=True, slots=True)
class _Previews:
    tx: Tx
    engine: Engine
    stack: Stack
    changes: Mapping[str, Change]
    requested_by: str

    def start(self, change: Change) -> UpdatePreview | None:
        """Start the preview of one resource. Return None if the update runs nothing for it."""
        kind, action = self.engine.type(change.type).name, _ACTIONS.get(change.kind)
        if kind not in type_names.DEPLOYMENTS | type_names.GROUPS or action is None:
            return None
        try:
            content = self._content(change)
            if not is_triggered(content, change.evaluated, action):
                return None
            servers = self._servers(change, is_group=kind in type_names.GROUPS)
            trigger = self._start(change, action, content, servers)
        except (_Unknown, StokerError) as error:
            return UpdatePreview(resource_name=change.name, action=action, reason=str(error))
        return UpdatePreview(resource_name=change.name, action=action, trigger_id=trigger.id)

    def _content(self, change: Change) -> Content:
        """Return what the deployment would run: the present config, or the one that the update would create."""
        written = change.definition["properties"].get("config")
        name = written.get("get_resource") if isinstance(written, Mapping) else None
        source = self.changes.get(name) if isinstance(name, str) else None
        if source is not None and source.kind in (Kind.ADDED, Kind.REPLACED):
            content = self._new_content(source)
        else:
            self._require(change, "config")
            id = change.evaluated.get("config")
            config = configs.get(self.tx, id, self.stack.project_id) if id else None
            content = content_of(config) if config else _content(change.name, UNGROUPED, "", {})
        return as_structured(content, change.evaluated)

    def _new_content(self, source: Change) -> Content:
        for name in source.evaluated:
            self._require(source, name)
        properties = source.evaluated
        if self.engine.type(source.type).name in type_names.COMPONENTS:
            return _content(source.name, COMPONENT, {"configs": properties["configs"]}, properties)
        if self.engine.type(source.type).name not in type_names.CONFIGS:
            raise _Unknown(f"config depends on {source.name}, unknown until applied")
        return _content(source.name, properties["group"] or UNGROUPED, properties["config"], properties)

    def _servers(self, change: Change, *, is_group: bool) -> list[Server]:
        key = "servers" if is_group else "server"
        self._require(change, key)
        value = change.evaluated.get(key)
        ids = list(value.values()) if isinstance(value, Mapping) else [value]
        return [enrollment.find(self.tx, self.stack.project_id, str(id)) for id in ids if id]

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
            source={"stack": self.stack.name, "stack_id": self.stack.id, "resource": change.name},
            stack_id=self.stack.id,
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
        """Raise _Unknown with the results on which an unknown property depends."""
        if not weigh(change.evaluated.get(name))[1]:
            return
        written = change.definition["properties"].get(name)
        unapplied = {place for place in _references(written) if self._is_unapplied(place)}
        what = ", ".join(sorted(unapplied)) or "results of the update"
        raise _Unknown(f"{name} depends on {what}, unknown until applied")

    def _is_unapplied(self, place: str) -> bool:
        change = self.changes.get(place.partition(".")[0])
        return change is not None and change.kind is not Kind.UNCHANGED


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
