"""List the software configs of the project."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session

COLUMNS = ("id", "name", "group", "creation_time")


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_list(form, session.client.configs.all(), COLUMNS)
