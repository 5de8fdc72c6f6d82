"""Show the last check of a deployment with its differences."""

import click

from stoker_client.cli._drift_views import differences
from stoker_client.cli._output import Output, echo, emit_one, output_option
from stoker_client.cli._session import Session

FIELDS = (
    "deployment_id", "name", "server_id", "server_name", "server_status", "state", "since", "checked_at",
    "requested_at", "check_interval", "enforce", "reason",
)  # fmt: skip


@click.command()
@click.argument("deployment")
@output_option
@click.pass_obj
def command(session: Session, deployment: str, output: Output) -> None:
    client = session.client
    check = client.checks.show(client.deployments.find_id(deployment))
    emit_one(output, check, FIELDS)
    if output.form in ("table", "wide") and check.get("changes"):
        echo("\n" + "\n".join(differences(check)))
