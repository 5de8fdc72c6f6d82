"""/v1/{project}/stacks/{name}/{id}/events and the same below a resource."""

from __future__ import annotations

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import finding, shapes
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Event
from stoker.store import events, resources

FILTERS = {
    "resource_name": "resource_name",
    "resource_type": "resource_type",
    "resource_action": "action",
    "resource_status": "status",
}


def index(call: Call) -> Reply:
    """Newest first, unless the request says how to sort."""
    equal = {column: call.query.getlist(key) for key, column in FILTERS.items() if key in call.query}
    name = call.path.get("resource_name")
    if name is not None:
        equal["resource_name"] = [name]
    direction = call.query.get("sort_dir")
    descending = direction == "desc" if direction else "sort_keys" not in call.query
    limit = reading.whole(call.query.get("limit"), "limit")
    depth = reading.whole(call.query.get("nested_depth"), "nested_depth") or 0
    with call.services.store.read() as tx:
        stack = finding.stack(tx, call)
        within = {each.id: each for each in finding.within(tx, stack, depth)}
        found = events.listed(
            tx, list(within), equal=equal, limit=limit, marker=call.query.get("marker"), descending=descending
        )
        if name is not None and not found and resources.named(tx, stack.id, name) is None:
            raise EntityNotFound(f"The Resource ({name}) could not be found in Stack {stack.name}.")
    links = finding.links(call)
    root = stack if depth else None
    shown = [_listed(each, shapes.event(each, within[each.stack_id], links, root)) for each in found]
    return Reply(200, {"events": shown})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        stack = finding.stack(tx, call)
        found = events.find(tx, stack.id, call.path["event_id"])
    if found is None or found.resource_name != call.path["resource_name"]:
        raise EntityNotFound.of("Event", call.path["event_id"])
    shown = shapes.event(found, stack, finding.links(call))
    return Reply(
        200, {"event": {**shown, "resource_type": found.resource_type, "resource_properties": dict(found.properties)}}
    )


def _listed(event: Event, shown: dict[str, object]) -> dict[str, object]:
    # Ours, after Heat's: who follows events wants to tell a stack's from a resource's.
    return {**shown, "resource_type": event.resource_type}
