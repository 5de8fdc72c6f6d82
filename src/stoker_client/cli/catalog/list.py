"""List the entries of the catalog: those that Stoker ships, and those of the site and of the project."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

COLUMNS = ("name", "version", "origin", "description")


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    emit_list(output, session.client.catalog.all(), COLUMNS, order="name")
