"""Resources, events and snapshots of a stack."""

from __future__ import annotations

from stoker.http.heat import events, resources, snapshots
from stoker.http.openapi.heat.stacks import LINKS, STATUS
from stoker.http.openapi.operations import Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    ANYTHING,
    ID,
    MAP,
    NOTHING,
    REQUESTED,
    TEXT,
    TIME,
    WHOLE,
    WORD_FLAG,
    Schema,
    list_of,
    maybe,
    one_of,
    record,
    ref,
    request,
    text,
    under,
    with_description,
    without_extras,
)
from stoker.model.status import Status

_DEPTH = with_description(WHOLE, "With those of so many levels of nested stacks")
_MANY = with_description(REQUESTED, "Only those of this value; may be given several times")
_EVENT: dict[str, Schema] = {
    "id": ID,
    "event_time": TIME,
    "resource_name": TEXT,
    "logical_resource_id": TEXT,
    "resource_status": TEXT,
    "resource_status_reason": TEXT,
    "physical_resource_id": TEXT,
    "links": LINKS,
    "resource_type": TEXT,
}

SCHEMAS: dict[str, Schema] = {
    "Resource": record(
        {
            "resource_name": ID,
            "logical_resource_id": ID,
            "physical_resource_id": with_description(TEXT, "Empty when there is none"),
            "resource_type": TEXT,
            "resource_status": STATUS,
            "resource_status_reason": TEXT,
            "creation_time": TIME,
            "updated_time": TIME,
            "required_by": list_of(TEXT),
            "links": LINKS,
        },
        parent_resource=TEXT,
        description=TEXT,
        attributes=with_description(MAP, "In detail only"),
        deployment=with_description(
            record({"status_reason": maybe(TEXT), "last_log": maybe(TEXT)}),
            "Of a deployment under way (Stoker's own)",
        ),
    ),
    "Event": record(_EVENT),
    "EventDetail": record({**_EVENT, "resource_properties": MAP}),
    "Snapshot": record(
        {
            "id": ID,
            "name": maybe(TEXT),
            "action": one_of("SNAPSHOT"),
            "status": one_of(*Status),
            "status_reason": TEXT,
            "data": MAP,
            "creation_time": TIME,
        }
    ),
}

RESOURCES = Noun(
    "Resources",
    {
        resources.index: Operation(
            summary="The resources of a stack",
            query={
                "with_detail": one_of("true", "false"),
                "nested_depth": _DEPTH,
                **dict.fromkeys(resources.FILTERS, _MANY),
            },
            answers=ok(under("resources", list_of(ref("Resource")))),
        ),
        resources.show: Operation(summary="One resource", answers=ok(under("resource", ref("Resource")))),
        resources.mark: Operation(
            summary="Call a resource unhealthy, so that the next update replaces it, or healthy again",
            body=without_extras(request({"mark_unhealthy": WORD_FLAG}, resource_status_reason=maybe(text(65535)))),
            example={"mark_unhealthy": True},
            answers=ok(NOTHING),
            errors=(409,),
        ),
        resources.metadata: Operation(
            summary="A resource's metadata: what the agent of a server polls", answers=ok(under("metadata", MAP))
        ),
        resources.signal: Operation(
            summary="Signal a resource: what came of a deployment, a condition, or a breakpoint to go on from",
            body=request(
                unset_hook=with_description(ANYTHING, "The breakpoint to leave, such as pre-create"),
                deploy_status_code=ANYTHING,
            ),
            body_needed=False,
            example={"deploy_stdout": "done", "deploy_status_code": 0},
            answers=ok(NOTHING),
            errors=(409,),
        ),
    },
    SCHEMAS,
)

EVENTS = Noun(
    "Events",
    {
        events.index: Operation(
            summary="What happened to a stack or a resource, newest first",
            query={
                "limit": WHOLE,
                "marker": REQUESTED,
                "sort_keys": REQUESTED,
                "sort_dir": REQUESTED,
                "nested_depth": _DEPTH,
                **dict.fromkeys(events.FILTERS, _MANY),
            },
            answers=ok(under("events", list_of(ref("Event")))),
        ),
        events.show: Operation(summary="One event", answers=ok(under("event", ref("EventDetail")))),
    },
)

SNAPSHOTS = Noun(
    "Snapshots",
    {
        snapshots.create: Operation(
            summary="Take a snapshot of a stack",
            body=request(name=maybe(text(255))),
            body_needed=False,
            answers=ok(ref("Snapshot")),
            errors=(409,),
        ),
        snapshots.index: Operation(
            summary="A stack's snapshots", answers=ok(under("snapshots", list_of(ref("Snapshot"))))
        ),
        snapshots.show: Operation(summary="One snapshot", answers=ok(under("snapshot", ref("Snapshot")))),
        snapshots.delete: Operation(summary="Delete a snapshot", answers=empty(), errors=(409,)),
        snapshots.restore: Operation(summary="Bring a stack back to a snapshot", answers=empty(202), errors=(409,)),
    },
)
