"""List the relays of the project."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

COLUMNS = ("name", "url", "last_seen", "version")
WIDE = ("id", "created_by", "created_at")


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    emit_list(output, session.client.relays.all(), COLUMNS, wide=WIDE, order="name")
