"""Failures of a stack: one line for each failed resource."""

from __future__ import annotations

from stoker_client.cli._output import echo
from stoker_client.cli._servers import server_names
from stoker_client.client import Client
from stoker_client.deployments import DEPLOYMENT_TYPES
from stoker_client.errors import NotFound
from stoker_client.failure_text import failure_text
from stoker_client.shapes import Deployment, Resource
from stoker_client.watch import Snapshot


class Failures:
    """Collects failures during a watch, because a rollback removes the failed resources."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[tuple[str, str | None], tuple[Resource, Deployment | None]] = {}

    def note(self, snapshot: Snapshot) -> None:
        """Record the new failures in ``snapshot``."""
        for resource in snapshot.resources:
            if resource["resource_status"].endswith("_FAILED") and _key(resource) not in self._seen:
                self._seen[_key(resource)] = resource, self._deployment(resource)

    def report(self, final: Snapshot) -> str:
        """Print a line for each failure to stderr. Return the remaining reason of the stack itself."""
        stack, failed = final.stack, self._of(final)
        names = server_names(self._client) if any(deployment for _, deployment in failed) else {}
        for resource, deployment in failed:
            where = f" on {names.get(deployment['server_id'], deployment['server_id'])}" if deployment else ""
            reason = resource.get("resource_status_reason")
            text = failure_text(reason, deployment.get("output_values") if deployment else None)
            echo(f"{resource['resource_name']}{where}: {text}", err=True)
        there = {resource["resource_name"] for resource in final.resources}
        for resource, deployment in failed:
            if deployment and resource["resource_name"] in there:
                ref = f"{stack['stack_name']}/{resource['resource_name']}"
                return f"`stoker deployment logs {ref}` shows all that was written"
        return "" if failed else failure_text(stack.get("stack_status_reason"))

    def _of(self, final: Snapshot) -> list[tuple[Resource, Deployment | None]]:
        """Return the resources that are failed at the end; if none is, all recorded failures."""
        now = {_key(resource) for resource in final.resources if resource["resource_status"].endswith("_FAILED")}
        return [seen for key, seen in self._seen.items() if key in now] or list(self._seen.values())

    def _deployment(self, resource: Resource) -> Deployment | None:
        if resource["resource_type"] not in DEPLOYMENT_TYPES or not resource.get("physical_resource_id"):
            return None
        try:
            return self._client.deployments.show(resource["physical_resource_id"])
        except NotFound:
            return None  # already deleted; the resource's reason suffices


def _key(resource: Resource) -> tuple[str, str | None]:
    return resource["resource_name"], resource.get("physical_resource_id")
