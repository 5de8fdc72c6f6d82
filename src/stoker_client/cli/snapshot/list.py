"""List the snapshots of a stack."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@output_option
@click.pass_obj
def command(session: Session, stack: str, form: str) -> None:
    emit_list(form, session.client.stacks.snapshots(stack), ("id", "name", "status", "creation_time"))
