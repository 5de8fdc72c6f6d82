"""Waits for deployments."""

from stoker_client.cli._output import echo
from stoker_client.client import Client
from stoker_client.deployments import name_of, server_name_of
from stoker_client.errors import ClientError
from stoker_client.failure_text import failure_text
from stoker_client.shapes import Deployment

#: The status reason of a deployment that waits for its agent only.
_ORDINARY = "Waiting for the agent"


def report_waiting(deployment: Deployment) -> None:
    """Print the reason why a new deployment waits, unless it only waits for its agent."""
    reason = deployment["status_reason"] or _ORDINARY
    if deployment["status"] == "IN_PROGRESS" and reason.startswith("Waiting") and reason != _ORDINARY:
        echo(f"stoker: {reason}", err=True)


def wait_for(client: Client, id_: str) -> Deployment:
    """Wait until a deployment ends. Raises ClientError if it failed."""
    wait_for_end(client, id_, f"continues (`stoker deployment cancel {id_}` ends it)")
    deployment = client.deployments.show(id_, patient=True)
    if deployment["status"] == "FAILED":
        raise ClientError(failure_line(deployment))
    return deployment


def failure_line(deployment: Deployment) -> str:
    """Return a line such as ``shop/setup on web1: exit 127: script: 7: nosuchcommand: not found``."""
    reason = failure_text(deployment["status_reason"], deployment.get("output_values"))
    return f"{name_of(deployment)} on {server_name_of(deployment)}: {reason}"


def wait_for_end(client: Client, id_: str, reminder: str) -> None:
    """Wait until a deployment ends. After Ctrl-C, print ``left``, which describes the deployment's state."""
    try:
        client.deployments.wait(id_)
    except KeyboardInterrupt:
        echo(f"stoker: no longer waiting; deployment {id_} {reminder}", err=True)
        raise
