"""List the stacks of the project."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session

COLUMNS = ("id", "stack_name", "stack_status", "creation_time", "updated_time")


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_list(form, session.client.stacks.all(), COLUMNS)
