"""Stacks, resources and events in Heat's JSON."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import UNSET, Meta, field

from stoker.hot import Parameters
from stoker.http.contracts import Absent, Answer, Count, Id, Link, Time, fill
from stoker.model.stack import Action, Event, Resource, Stack, Status
from stoker.stacks.engine.session import STACK_TYPE
from stoker.store.rows import heat_time

#: The action and the status of a stack or resource, such as CREATE_COMPLETE.
FullStatus = Annotated[str, Meta(pattern=f"^({'|'.join(Action)})_({'|'.join(Status)})$")]


class StackOutput(Answer):
    output_key: str
    description: Any
    output_value: Any
    output_error: str | Absent = UNSET


class StackBase(Answer):
    id: Id
    links: list[Link]
    name: Id = field(name="stack_name")
    description: str
    created_at: Time = field(name="creation_time")
    updated_at: Time | None = field(name="updated_time")
    deleted_at: Time | None = field(name="deletion_time")
    username: str | None = field(name="stack_owner")
    parent_id: Annotated[str | None, Meta(description="The id of the parent stack of a nested stack")] = field(
        name="parent"
    )
    user_project_id: str = field(name="stack_user_project_id")
    tags: list[str] | None


class StackSummary(StackBase):
    stack_status: FullStatus
    reason: str = field(name="stack_status_reason")


class StackOptions(StackBase, kw_only=True):
    """The members of a stack that lists do not have; see ``detail``."""

    template_description: str
    notification_topics: list[str]
    capabilities: list[str]
    parameters: Annotated[dict[str, str], Meta(description="All values as text, hidden ones as ******")]
    disable_rollback: bool
    timeout_mins: Count | None


class StackDetail(StackOptions, kw_only=True):
    stack_status: FullStatus
    reason: str = field(name="stack_status_reason")
    outputs: list[StackOutput] | Absent = UNSET


class LiveDeployment(Answer):
    """The state of a resource's deployment in progress (Stoker's own)."""

    status_reason: str | None
    last_log: str | None


class StackResource(Answer):
    """``description`` and ``attributes`` are present in detailed responses only."""

    name: Id = field(name="resource_name")
    logical_resource_id: Id
    physical_resource_id: str
    declared_type: str = field(name="resource_type")
    resource_status: FullStatus
    reason: str = field(name="resource_status_reason")
    created_at: Time = field(name="creation_time")
    updated_time: Time
    required_by: list[str]
    links: list[Link]
    parent_resource: str | Absent = UNSET
    description: str | Absent = UNSET
    attributes: dict[str, Any] | Absent = UNSET
    deployment: LiveDeployment | Absent = UNSET


class StackEvent(Answer):
    id: str
    at: Time = field(name="event_time")
    resource_name: str
    logical_resource_id: str
    resource_status: str
    reason: str = field(name="resource_status_reason")
    physical_resource_id: str
    links: list[Link]
    resource_type: str


class EventDetail(StackEvent):
    properties: dict[str, Any] = field(name="resource_properties")


def stack_url(root: str, stack: Stack) -> str:
    """Return the URL of a stack. ``root``: the public URL of Stoker, as in all functions of this module."""
    return f"{root}/v1/{stack.project_id}/stacks/{stack.name}/{stack.id}"


def _resource_url(root: str, stack: Stack, name: str) -> str:
    return f"{stack_url(root, stack)}/resources/{quote(name, safe='')}"


def detail(stack: Stack, root: str) -> dict[str, Any]:
    """Return the members of a stack's own page that are no attributes of the stack."""
    return {
        "links": [Link(stack_url(root, stack), "self")],
        "template_description": stack.description,
        "notification_topics": [],
        "capabilities": [],
        "parameters": Parameters.from_json(stack.parameters).for_display(),
        "tags": list(stack.tags),  # in lists, a stack without tags has null
    }


def resource(
    resource: Resource,
    stack: Stack,
    root: str,
    required_by: Collection[str],
    nested: Stack | None = None,
    **computed: Any,
) -> StackResource:
    """
    Serialize a resource.

    ``nested`` is the nested stack that the resource represents; ``computed`` are the members of detailed responses.
    """
    own = [Link(_resource_url(root, stack, resource.name), "self"), Link(stack_url(root, stack), "stack")]
    return StackResource(
        name=resource.name,
        logical_resource_id=resource.name,
        physical_resource_id=resource.physical_id or "",
        declared_type=resource.declared_type,
        resource_status=f"{resource.action}_{resource.status}",
        reason=resource.reason,
        created_at=heat_time(resource.created_at),
        updated_time=heat_time(resource.updated_at or resource.created_at),
        required_by=sorted(required_by),
        links=own if nested is None else [*own, Link(stack_url(root, nested), "nested")],
        parent_resource=UNSET if stack.parent_resource is None else stack.parent_resource,
        **computed,
    )


def event(kind: type[StackEvent], event: Event, stack: Stack, root: str, top: Stack | None = None) -> StackEvent:
    """Serialize an event. ``top``: the stack of the request, if the response includes events of nested stacks."""
    resource_url = _resource_url(root, stack, event.resource_name)
    return fill(
        kind,
        event,
        logical_resource_id=event.resource_name,
        resource_status=f"{event.action}_{event.status}",
        physical_resource_id=event.physical_id or "",
        links=[
            Link(f"{resource_url}/events/{event.id}", "self"),
            *([] if event.resource_type == STACK_TYPE else [Link(resource_url, "resource")]),
            Link(stack_url(root, stack), "stack"),
            *([] if top is None else [Link(stack_url(root, top), "root_stack")]),
        ],
    )
