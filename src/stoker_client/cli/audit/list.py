"""List what was decided, newest first."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._servers import server_id
from stoker_client.cli._session import Session

COLUMNS = ("time", "who", "what", "decision", "server_id", "reason")


@click.command()
@click.option("--server", metavar="SERVER", help="Only about this server: name or id.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="The newest N.")
@output_option
@click.pass_obj
def command(session: Session, server: str | None, limit: int, form: str) -> None:
    client = session.client
    wanted = server_id(client, server) if server is not None else None
    emit_list(form, client.audit.all(server=wanted, limit=limit), COLUMNS)
