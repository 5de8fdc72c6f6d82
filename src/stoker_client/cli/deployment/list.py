"""List the deployments of the project, or of one server."""

from typing import cast

import click

from stoker_client.cli._output import Output, Row, emit_list, list_options
from stoker_client.cli._servers import server_id
from stoker_client.cli._session import Session
from stoker_client.deployments import name_of, requester_of, server_name_of
from stoker_client.shapes import Deployment

COLUMNS = ("id", "name", "server", "action", "status", "changed", "creation_time")
WIDE = ("config_name", "requested_by", "server_id", "config_id", "changed_items", "status_reason")
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
    emit_list(output, deployments, COLUMNS, wide=WIDE, cells=_cells)


def _cells(deployment: Row) -> Row:
    return {
        "name": name_of(cast(Deployment, deployment)),
        "server": server_name_of(cast(Deployment, deployment)),
        "requested_by": requester_of(deployment),
    }
