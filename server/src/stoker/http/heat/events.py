"""/v1/{project}/stacks/{name}/{id}/events, also of one resource."""

from __future__ import annotations

from typing import Any

from msgspec import field

from stoker.http.contracts import Query, Whole, operation
from stoker.http.heat import serializers, stack_lookup
from stoker.http.heat.serializers import EventDetail, StackEvent
from stoker.http.request import RequestContext
from stoker.model.errors import EntityNotFound
from stoker.stacks.operations import no_resource
from stoker.store import events, resources
from stoker.store.tx import Tx


class EventQuery(Query):
    """Filters, by the names of the columns; each may occur several times."""

    limit: Whole | None = None
    marker: str | None = None
    sort_keys: str | None = None
    sort_dir: str | None = None
    nested_depth: Whole = 0
    resource_name: tuple[str, ...] = ()
    resource_type: tuple[str, ...] = ()
    action: tuple[str, ...] = field(name="resource_action", default=())
    status: tuple[str, ...] = field(name="resource_status", default=())

    @property
    def is_descending(self) -> bool:
        """Whether the newest event comes first, as without any order."""
        return self.sort_dir == "desc" if self.sort_dir else self.sort_keys is None

    def filter_by(self, resource: str | None) -> dict[str, list[str]]:
        """Return the permitted values by column; ``resource`` is the name of the only one."""
        columns = ("resource_name", "resource_type", "action", "status")
        equal = {column: list(values) for column in columns if (values := getattr(self, column))}
        return equal if resource is None else {**equal, "resource_name": [resource]}


@operation(200, {"events": list[StackEvent]})
def index(request: RequestContext, tx: Tx, query: EventQuery) -> dict[str, Any]:
    """List the events of a stack or a resource, newest first unless the query sets an order."""
    name, stack = request.path.get("resource_name"), stack_lookup.stack(tx, request)
    within = {part.id: part for part in stack_lookup.within(tx, stack, query.nested_depth)}
    page = events.list_all(
        tx,
        list(within),
        equal=query.filter_by(name),
        limit=query.limit,
        marker=query.marker,
        descending=query.is_descending,
    )
    if name is not None and not page and resources.find_by_name(tx, stack.id, name) is None:
        raise no_resource(name, stack)
    root, top = request.app.settings.public_url, stack if query.nested_depth else None
    shown = [serializers.event(StackEvent, event, within[event.stack_id], root, top) for event in page]
    return {"events": shown}


@operation(200, {"event": EventDetail})
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return an event with the properties of its resource."""
    stack = stack_lookup.stack(tx, request)
    event = events.find(tx, stack.id, request.path["event_id"])
    if event is None or event.resource_name != request.path["resource_name"]:
        raise EntityNotFound.of("Event", request.path["event_id"])
    return {"event": serializers.event(EventDetail, event, stack, request.app.settings.public_url)}
