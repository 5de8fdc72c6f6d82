"""Why a stack failed: what the failed scripts wrote, before any reason."""

import click

from stoker_client.client import Client
from stoker_client.errors import NotFound
from stoker_client.shapes import Deployment, Resource
from stoker_client.watch import Snapshot

DEPLOYMENT_TYPES = ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")


class Failures:
    """The failures seen while watching: a rollback removes what failed, so they are looked at when they happen."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[tuple[str, str | None], tuple[Resource, str]] = {}

    def note(self, snapshot: Snapshot) -> None:
        """Remember what failed newly in ``snapshot``."""
        for resource in snapshot.resources:
            if resource["resource_status"].endswith("_FAILED") and _key(resource) not in self._seen:
                self._seen[_key(resource)] = resource, self._stderr(resource)

    def tell(self, final: Snapshot) -> None:
        """Print to stderr what the failed scripts wrote, then the reasons that the stack's own does not repeat."""
        failed = self._of(final)
        for _, text in failed:
            if text.strip():
                click.echo(text.rstrip("\n"), err=True)
        known = final.stack.get("stack_status_reason") or ""
        for resource, _ in failed:
            reason = resource.get("resource_status_reason") or "no reason given"
            if reason not in known:
                click.echo(f"{resource['resource_name']}: {reason}", err=True)

    def _of(self, final: Snapshot) -> list[tuple[Resource, str]]:
        """Those that failed at the end; when nothing is left of them, all that were seen failing."""
        now = {_key(resource) for resource in final.resources if resource["resource_status"].endswith("_FAILED")}
        return [seen for key, seen in self._seen.items() if key in now] or list(self._seen.values())

    def _stderr(self, resource: Resource) -> str:
        if resource["resource_type"] not in DEPLOYMENT_TYPES or not resource.get("physical_resource_id"):
            return ""
        try:
            return stderr_of(self._client.deployments.show(resource["physical_resource_id"]))
        except NotFound:
            return ""  # gone already: its reason still tells


def stderr_of(deployment: Deployment) -> str:
    """What the script of ``deployment`` wrote to its standard error."""
    return str((deployment.get("output_values") or {}).get("deploy_stderr") or "")


def _key(resource: Resource) -> tuple[str, str | None]:
    return resource["resource_name"], resource.get("physical_resource_id")
