"""List the snapshots of a stack."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@list_options()
@click.pass_obj
def command(session: Session, stack: str, output: Output) -> None:
    emit_list(output, session.client.stacks.snapshots(stack), ("id", "name", "status", "creation_time"))
