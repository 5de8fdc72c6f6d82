"""List the stacks of the project."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.cli._stack_status import is_status, status_option

COLUMNS = ("id", "stack_name", "stack_status", "creation_time")
WIDE = ("updated_time", "stack_owner", "tags", "parent")


@click.command()
@status_option
@list_options()
@click.pass_obj
def command(session: Session, status: str | None, output: Output) -> None:
    stacks = [stack for stack in session.client.stacks.all() if is_status(stack["stack_status"], status)]
    emit_list(output, stacks, COLUMNS, wide=WIDE)
