"""/v1/{project}/stacks/{name}/{id}/events, also of one resource."""

from __future__ import annotations

from stoker.http import params
from stoker.http.heat import serializers, stack_lookup
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Event
from stoker.store import events, resources

FILTERS = {
    "resource_name": "resource_name",
    "resource_type": "resource_type",
    "resource_action": "action",
    "resource_status": "status",
}


def index(request: RequestContext) -> Response:
    """List events, newest first unless the query sets an order."""
    equal = {column: request.query.getlist(key) for key, column in FILTERS.items() if key in request.query}
    name = request.path.get("resource_name")
    if name is not None:
        equal["resource_name"] = [name]
    direction = request.query.get("sort_dir")
    descending = direction == "desc" if direction else "sort_keys" not in request.query
    limit = params.whole(request.query.get("limit"), "limit")
    depth = params.whole(request.query.get("nested_depth"), "nested_depth") or 0
    with request.app.store.read() as tx:
        stack = stack_lookup.stack(tx, request)
        within = {each.id: each for each in stack_lookup.within(tx, stack, depth)}
        found = events.list_all(
            tx, list(within), equal=equal, limit=limit, marker=request.query.get("marker"), descending=descending
        )
        if name is not None and not found and resources.find_by_name(tx, stack.id, name) is None:
            raise EntityNotFound(f"The Resource ({name}) could not be found in Stack {stack.name}.")
    links = stack_lookup.links(request)
    root = stack if depth else None
    shown = [_list_entry(each, serializers.event(each, within[each.stack_id], links, root)) for each in found]
    return Response(200, {"events": shown})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        stack = stack_lookup.stack(tx, request)
        found = events.find(tx, stack.id, request.path["event_id"])
    if found is None or found.resource_name != request.path["resource_name"]:
        raise EntityNotFound.of("Event", request.path["event_id"])
    shown = serializers.event(found, stack, stack_lookup.links(request))
    return Response(
        200, {"event": {**shown, "resource_type": found.resource_type, "resource_properties": dict(found.properties)}}
    )


def _list_entry(event: Event, shown: dict[str, object]) -> dict[str, object]:
    # Not in Heat: clients that follow events need to distinguish events of stacks from those of resources.
    return {**shown, "resource_type": event.resource_type}
