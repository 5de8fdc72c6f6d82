"""The nouns as Heat's API shows them. Spelled out, so that a new field is published on purpose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from stoker.hot import Parameters
from stoker.model.deployment import Deployment
from stoker.model.stack import Event, Resource, Stack
from stoker.stacks.transition import STACK_TYPE
from stoker.store.rows import heat_time


class Links:
    """URLs below one project's root, as in the catalog."""

    def __init__(self, public_url: str, project_id: str) -> None:
        self._root = f"{public_url}/v1/{project_id}"

    def stack(self, stack: Stack) -> str:
        return f"{self._root}/stacks/{stack.name}/{stack.id}"

    def resource(self, stack: Stack, name: str) -> str:
        return f"{self.stack(stack)}/resources/{quote(name, safe='')}"


def link(href: str, rel: str = "self") -> dict[str, str]:
    return {"href": href, "rel": rel}


def time(moment: datetime | None) -> str | None:
    return None if moment is None else heat_time(moment)


def stack_summary(stack: Stack, links: Links) -> dict[str, Any]:
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
    shown = stack_summary(stack, links) | {
        "description": stack.description,
        "template_description": stack.description,
        "notification_topics": [],
        "capabilities": [],
        "parameters": Parameters.from_json(stack.parameters).shown(),
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
    }
    return shown if outputs is None else {**shown, "outputs": outputs}


def resource(
    resource: Resource, stack: Stack, links: Links, required_by: Collection[str], nested: Stack | None = None
) -> dict[str, Any]:
    """``nested``: the stack that the resource is."""
    shown: dict[str, Any] = {
        "resource_name": resource.name,
        "logical_resource_id": resource.name,
        "physical_resource_id": resource.physical_id or "",
        "resource_type": resource.type,
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
    """``root``: the stack whose events were asked for, when they may be of stacks inside it."""
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


def deployment(deployment: Deployment) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": deployment.id,
        "server_id": deployment.server_id,
        "config_id": deployment.config_id,
        "input_values": _plain(deployment.input_values),
        "output_values": _plain(deployment.output_values),
        "action": deployment.action,
        "status": deployment.status,
        "status_reason": deployment.status_reason,
        "creation_time": time(deployment.created_at),
    }
    if deployment.updated_at is not None:
        shown["updated_time"] = time(deployment.updated_at)
    return shown


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(values)
