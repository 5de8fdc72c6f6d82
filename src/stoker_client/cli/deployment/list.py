"""List the deployments of the project, or of one server."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._servers import cell_names, server_id
from stoker_client.cli._session import Session

COLUMNS = ("id", "server", "action", "status", "changed", "creation_time")
WIDE = ("server_id", "config_id", "changed_items", "status_reason")
STATUSES = ("IN_PROGRESS", "COMPLETE", "FAILED")


@click.command()
@click.option("--server", metavar="SERVER", help="Only this server: name or id.")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only those in this state.")
@list_options()
@click.pass_obj
def command(session: Session, server: str | None, status: str | None, output: Output) -> None:
    client = session.client
    id_ = server_id(client, server) if server is not None else None
    deployments = [deployment for deployment in client.deployments.all(id_) if status in (None, deployment["status"])]
    names = cell_names(client, output)
    emit_list(
        output,
        deployments,
        COLUMNS,
        wide=WIDE,
        cells=lambda deployment: {"server": names.get(deployment["server_id"], deployment["server_id"])},
    )
