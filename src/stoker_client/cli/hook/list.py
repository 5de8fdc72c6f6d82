"""List the stored hooks that the project may use: its own and those of the site."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

COLUMNS = ("name", "version", "size", "sha256", "public", "created_by", "creation_time")


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    emit_list(output, session.client.hooks.all(), COLUMNS, order="name")
