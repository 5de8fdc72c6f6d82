"""Resolves a trigger's request: the content that it runs, its targets, and the name and inputs of each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.deployments.schema import check_values, refuse_missing
from stoker.model.config import COMPONENT, Content, list_parts
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.server import Server
from stoker.servers import enrollment
from stoker.stacks.engine import Engine
from stoker.store import server_lists, servers
from stoker.store.tx import Tx
from stoker.triggers.request import TriggerRequest
from stoker.triggers.sources import Source, TargetDefaults, find_source

#: Action of runs of a config that has no actions of its own.
TRIGGER = "TRIGGER"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedTrigger:
    """A trigger's source, action and targets, before it is stored."""

    source: Source
    action: str
    #: The targets of one server are neighbors, in the order in which they run.
    targets: Sequence[tuple[Server, TargetDefaults]]
    #: The request's own values, converted to the types that the config declares.
    input_values: Mapping[str, Any]


def resolve(tx: Tx, engine: Engine, project_id: str, request: TriggerRequest) -> ResolvedTrigger:
    """Resolve the request of a trigger. Changes nothing. Raises EntityNotFound, Invalid, Conflict."""
    source = find_source(tx, engine, project_id, request)
    action = _action(source.content, request.action)
    targets = _list_targets(tx, project_id, source, request)
    values = check_values(
        source.content,
        action,
        request.input_values or {},
        in_use={*source.input_values, *(name for defaults in source.own for name in defaults.input_values)},
        allow_undeclared=bool(request.allow_undeclared),
    )
    refuse_missing(source.content, ({*defaults.input_values, *values} for _, defaults in targets))
    if (selection := request.selection) is not None:
        source = replace(source, view={**source.view, **selection.to_json()})
    return ResolvedTrigger(source=source, action=action, targets=targets, input_values=values)


def _action(content: Content, action: str | None) -> str:
    if content.group != COMPONENT:
        return action or TRIGGER
    names = dict.fromkeys(str(name) for part in list_parts(content.config) for name in part["actions"])
    if action is None:
        raise Invalid(f"action is needed: the component has {', '.join(names) or 'none'}")
    if action not in names:
        raise Invalid(f"The component has no action {action!r:.100}: it has {', '.join(names) or 'none'}")
    return action


def _list_targets(
    tx: Tx, project_id: str, source: Source, request: TriggerRequest
) -> Sequence[tuple[Server, TargetDefaults]]:
    """Return the targets: the source's deployments on each server, or one run with its defaults. Raises Invalid."""
    own: dict[str, list[TargetDefaults]] = {}
    for defaults in source.own:
        own.setdefault(defaults.server_id, []).append(defaults)
    by_id = {server.id: server for server in _select_servers(tx, project_id, source, request)}
    if not by_id:
        raise Invalid(_nothing(source, request))
    default = TargetDefaults(server_id="", name=source.name, input_values=source.input_values)
    return [
        (server, defaults)
        for server in by_id.values()
        for defaults in own.get(server.id) or (replace(default, server_id=server.id),)
    ]


def _select_servers(tx: Tx, project_id: str, source: Source, request: TriggerRequest) -> Iterable[Server]:
    if request.servers is not None:
        return enrollment.find_all(tx, project_id, request.servers)
    if request.selection is None:
        return _find_servers(tx, project_id, source.own)
    selected = server_lists.find_by_selector(tx, project_id, request.selection)
    own = {defaults.server_id for defaults in source.own}
    matching = sorted(selected, key=lambda server: server.created_at)
    return [server for server in matching if not own or server.id in own]


def _find_servers(tx: Tx, project_id: str, own: Sequence[TargetDefaults]) -> list[Server]:
    """Return the servers of existing deployments."""
    by_id = servers.find_several(tx, [defaults.server_id for defaults in own])
    of_project = {id: server for id, server in by_id.items() if server.project_id == project_id}
    for defaults in own:
        if defaults.server_id not in of_project:
            raise EntityNotFound(f"The Server ({defaults.server_id}) could not be found: no agent could run it there.")
    return [of_project[defaults.server_id] for defaults in own]


def _nothing(source: Source, request: TriggerRequest) -> str:
    if (selection := request.selection) is not None:
        what = "matches the selector" if selection.text else "has the labels"
        return f"no server {what} {selection}"[:400]
    if source.stack_id is not None:
        return "no deployment has brought that to any server: say which by servers, labels or selector"
    return "servers, labels or a selector are needed: a config says nothing of where to run it"
