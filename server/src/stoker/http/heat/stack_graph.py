"""/v1/{project}/stacks/{name}/{id}/graph: the dependencies of a stack's resources, with times (Stoker's own)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, field

from stoker.http.contracts import Answer, Id, Query, Time, Whole, fill, operation
from stoker.http.heat import stack_lookup
from stoker.http.heat.resources import live_deployments, visible_resources
from stoker.http.heat.serializers import FullStatus
from stoker.http.request import RequestContext
from stoker.model.stack import Resource, Status
from stoker.resources.base import TakesSignals
from stoker.store import deployments, events, resources, servers, stacks, steps
from stoker.store.tx import Tx


class GraphNode(Answer):
    """A resource. Until its step begins, it has the state of its last action, and ``waits_for`` or ``breakpoint``."""

    id: Id
    name: Id = field(name="resource_name")
    stack_id: Id
    declared_type: str = field(name="resource_type")
    resource_status: FullStatus
    reason: Annotated[str, Meta(description="Why the resource has its state, or what its run waits for")] = field(
        name="resource_status_reason"
    )
    physical_id: str | None = field(name="physical_resource_id")
    nested_stack_id: Annotated[str | None, Meta(description="The nested stack that the resource represents")]
    server_id: Annotated[str | None, Meta(description="The server that the resource is, or runs on")]
    server_name: str | None
    started_at: Annotated[Time | None, Meta(description="When the last action began")] = field(name="start_time")
    ended_at: Annotated[Time | None, Meta(description="null while the action is in progress")] = field(name="end_time")
    hook: Annotated[str | None, Meta(description="The breakpoint that the resource waits at")] = field(
        name="breakpoint"
    )
    waits_for: Annotated[list[Id], Meta(description="The nodes that must end before this one may begin")]


class GraphEdge(Answer):
    """``target`` requires ``source``. Both are ids of nodes of one stack."""

    source: Id
    target: Id


class StackGraph(Answer):
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class GraphQuery(Query):
    nested_depth: Annotated[Whole, Meta(description="Levels of nested stacks whose resources are included")] = 0


@operation(200, {"graph": StackGraph})
def show(request: RequestContext, tx: Tx, query: GraphQuery) -> dict[str, Any]:
    """Return the resources of a stack with their servers, times and dependencies."""
    top = stack_lookup.stack(tx, request)
    tree = stacks.tree(tx, top.id)
    ids = [top.id, *(stack.id for stack in tree if 0 < stack.depth - top.depth <= query.nested_depth)]
    nested = {stack.parent_resource_id: stack.id for stack in tree}
    shown = visible_resources(resources.prime(tx, ids))
    live = live_deployments(tx, request, shown)
    server_ids, names = _find_servers(tx, request, shown)
    times, waiting = events.times(tx, ids), _list_waiting(tx, ids, shown)

    def serialize(resource: Resource) -> GraphNode:
        started_at, ended_at = times.get((resource.stack_id, resource.name), (None, None))
        deployment, server_id = live.get(resource.physical_id or ""), server_ids.get(resource.id)
        return fill(
            GraphNode,
            resource,
            resource_status=f"{resource.action}_{resource.status}",
            reason=(deployment and deployment.status_reason) or resource.reason,
            nested_stack_id=nested.get(resource.id),
            server_id=server_id,
            server_name=names.get(server_id or ""),
            started_at=started_at,
            ended_at=None if resource.status is Status.IN_PROGRESS else ended_at,
            waits_for=waiting.get(resource.id, []),
        )

    return {"graph": StackGraph(list(map(serialize, shown)), _list_edges(shown))}


def _list_edges(shown: Sequence[Resource]) -> list[GraphEdge]:
    ids = {(resource.stack_id, resource.name): resource.id for resource in shown}
    pairs = [(ids.get((resource.stack_id, name)), resource.id) for resource in shown for name in resource.requires]
    return [GraphEdge(source, target) for source, target in pairs if source is not None]


def _find_servers(tx: Tx, request: RequestContext, shown: Sequence[Resource]) -> tuple[dict[str, str], dict[str, str]]:
    """
    Return by resource id the id of the server that the resource is, or that its deployment runs on, and the names of
    the project's servers among these.

    A deployment that does not exist yet is on the server that it requires, if it requires one.
    """
    physical_ids = {
        (resource.stack_id, resource.name): resource.physical_id for resource in shown if resource.physical_id
    }
    deployed = deployments.server_ids(tx, list(physical_ids.values()))
    machines = servers.find_several(tx, {*physical_ids.values(), *deployed.values()})

    def find_server(resource: Resource) -> str | None:
        id = resource.physical_id
        if id:
            return deployed.get(id, id if id in machines else None)
        required = [other for name in resource.requires if (other := physical_ids.get((resource.stack_id, name)))]
        on_servers = [other for other in required if other in machines]
        is_deployment = isinstance(request.app.engine.types.get(resource.type), TakesSignals)
        return on_servers[0] if is_deployment and len(on_servers) == 1 else None

    server_ids = {resource.id: id for resource in shown if (id := find_server(resource)) is not None}
    # a policy may admit deployments on servers of other projects
    return server_ids, {id: machine.name for id, machine in machines.items() if machine.project_id == request.project}


def _list_waiting(tx: Tx, stack_ids: Sequence[str], shown: Sequence[Resource]) -> dict[str, list[str]]:
    """Return by resource id the resources whose steps must end before that of the resource may begin."""
    pending, edges = steps.list_pending(tx, stack_ids)
    # The key of a step is the name of a resource, or its id.
    by_key = {(resource.stack_id, key): resource for resource in shown for key in (resource.name, resource.id)}
    waiting: dict[str, list[str]] = {}
    for stack_id, need, key in edges:
        resource, required = by_key.get((stack_id, key)), by_key.get((stack_id, need))
        if resource is None or required is None or (stack_id, key) not in pending:
            continue
        if (stack_id, need) in pending or required.status is Status.IN_PROGRESS:
            waiting.setdefault(resource.id, []).append(required.id)
    return waiting
