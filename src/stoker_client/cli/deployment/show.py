"""Show a deployment."""

from typing import Any

import click

from stoker_client.checks import state_of
from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.deployments import requester_of
from stoker_client.errors import Refused

FIELDS = (
    "id", "stack_name", "resource_name", "server_name", "server_id", "config_name", "config_id", "requested_by",
    "action", "status", "status_reason", "changed", "changed_items", "creation_time", "updated_time", "check",
    "input_values", "output_values",
)  # fmt: skip


@click.command()
@click.argument("deployment")
@output_option
@click.pass_obj
def command(session: Session, deployment: str, output: Output) -> None:
    deployments = session.client.deployments
    id_ = deployments.find_id(deployment)
    shown = {**deployments.show(id_), **_check(session, id_)}
    emit_one(output, shown, FIELDS, text={"requested_by": requester_of(shown) or ""})


def _check(session: Session, id_: str) -> dict[str, Any]:
    """Return the state of the last check; empty without checks, or of a service without them, as Heat."""
    try:
        check = session.client.checks.show(id_)
    except Refused:
        return {}
    return {"check": f"{state_of(check)} since {check['since']}"}
