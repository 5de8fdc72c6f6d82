"""Show a deployment."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session

FIELDS = (
    "id", "server_id", "config_id", "action", "status", "status_reason", "creation_time", "updated_time",
    "input_values", "output_values",
)  # fmt: skip


@click.command()
@click.argument("deployment")
@output_option
@click.pass_obj
def command(session: Session, deployment: str, output: Output) -> None:
    deployments = session.client.deployments
    emit_one(output, deployments.show(deployments.find_id(deployment)), FIELDS)
