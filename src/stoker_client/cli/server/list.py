"""List the servers of the project."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session

COLUMNS = ("id", "name", "kind", "status", "last_seen", "hostname")


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_list(form, session.client.servers.all(), COLUMNS)
