"""List the audit log, newest first."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._servers import server_id
from stoker_client.cli._session import Session

COLUMNS = ("time", "actor", "action", "outcome", "server_id", "reason")


@click.command()
@click.option("--server", metavar="SERVER", help="Only entries of this server: name or id.")
@list_options(limit=100)
@click.pass_obj
def command(session: Session, server: str | None, output: Output) -> None:
    client = session.client
    id_ = server_id(client, server) if server is not None else None
    emit_list(output, client.audit.all(server=id_, limit=output.first), COLUMNS)
