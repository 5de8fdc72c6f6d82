"""List the deployments of the project, or of one server."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._servers import server_id
from stoker_client.cli._session import Session

COLUMNS = ("id", "server_id", "config_id", "action", "status", "creation_time")


@click.command()
@click.option("--server", metavar="SERVER", help="Only this server's: name or id.")
@output_option
@click.pass_obj
def command(session: Session, server: str | None, form: str) -> None:
    client = session.client
    wanted = server_id(client, server) if server is not None else None
    emit_list(form, client.deployments.all(wanted), COLUMNS)
