"""Take a snapshot of a stack."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.argument("name", required=False)
@output_option
@click.pass_obj
def command(session: Session, stack: str, name: str | None, output: Output) -> None:
    emit_one(output, session.client.stacks.take_snapshot(stack, name), ("id", "name", "status", "creation_time"))
