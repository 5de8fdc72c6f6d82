"""Serializes objects to Heat's JSON. Lists every field explicitly, so that no new field is published by accident."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from urllib.parse import quote

from stoker.hot import Parameters
from stoker.model.stack import Event, Resource, Stack
from stoker.stacks.engine.session import STACK_TYPE
from stoker.store.rows import heat_time


class Links:
    """Builds the URLs of a project's stacks and resources, with the same root as the catalog."""

    def __init__(self, public_url: str, project_id: str) -> None:
        self._root = f"{public_url}/v1/{project_id}"

    def stack(self, stack: Stack) -> str:
        """Return the URL of a stack."""
        return f"{self._root}/stacks/{stack.name}/{stack.id}"

    def resource(self, stack: Stack, name: str) -> str:
        """Return the URL of a resource of a stack."""
        return f"{self.stack(stack)}/resources/{quote(name, safe='')}"


def link(href: str, rel: str = "self") -> dict[str, str]:
    return {"href": href, "rel": rel}


def time(moment: datetime | None) -> str | None:
    """Format a time as Heat does; None stays None."""
    return None if moment is None else heat_time(moment)


def stack_summary(stack: Stack, links: Links) -> dict[str, Any]:
    """Serialize a stack for lists."""
    return {
        "id": stack.id,
        "links": [link(links.stack(stack))],
        "stack_name": stack.name,
        "description": "",
        "stack_status": f"{stack.action}_{stack.status}",
        "stack_status_reason": stack.reason,
        "creation_time": time(stack.created_at),
        "updated_time": time(stack.updated_at),
        "deletion_time": time(stack.deleted_at),
        "stack_owner": stack.username,
        "parent": stack.parent_id,
        "stack_user_project_id": stack.user_project_id,
        "tags": list(stack.tags) or None,
    }


def stack(stack: Stack, links: Links, outputs: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Serialize a stack for its own page. ``outputs`` None: without outputs."""
    shown = stack_summary(stack, links) | {
        "description": stack.description,
        "template_description": stack.description,
        "notification_topics": [],
        "capabilities": [],
        "parameters": Parameters.from_json(stack.parameters).for_display(),
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
        "tags": list(stack.tags),  # in lists, a stack without tags has null
    }
    return shown if outputs is None else {**shown, "outputs": outputs}


def resource(
    resource: Resource, stack: Stack, links: Links, required_by: Collection[str], nested: Stack | None = None
) -> dict[str, Any]:
    """Serialize a resource. ``nested``: the nested stack that the resource represents."""
    shown: dict[str, Any] = {
        "resource_name": resource.name,
        "logical_resource_id": resource.name,
        "physical_resource_id": resource.physical_id or "",
        "resource_type": resource.declared_type,
        "resource_status": f"{resource.action}_{resource.status}",
        "resource_status_reason": resource.reason,
        "creation_time": time(resource.created_at),
        "updated_time": time(resource.updated_at or resource.created_at),
        "required_by": sorted(required_by),
        "links": [link(links.resource(stack, resource.name)), link(links.stack(stack), "stack")],
    }
    if nested is not None:
        shown["links"].append(link(links.stack(nested), "nested"))
    if stack.parent_resource is not None:
        shown["parent_resource"] = stack.parent_resource
    return shown


def event(event: Event, stack: Stack, links: Links, root: Stack | None = None) -> dict[str, Any]:
    """Serialize an event. ``root``: the stack of the request, if the response includes events of nested stacks."""
    of_stack = event.resource_type == STACK_TYPE
    named = [] if of_stack else [link(links.resource(stack, event.resource_name), "resource")]
    own = f"{links.resource(stack, event.resource_name)}/events/{event.id}"
    return {
        "id": event.id,
        "event_time": time(event.at),
        "resource_name": event.resource_name,
        "logical_resource_id": event.resource_name,
        "resource_status": f"{event.action}_{event.status}",
        "resource_status_reason": event.reason,
        "physical_resource_id": event.physical_id or "",
        "links": [
            link(own),
            *named,
            link(links.stack(stack), "stack"),
            *([link(links.stack(root), "root_stack")] if root is not None else []),
        ],
    }
