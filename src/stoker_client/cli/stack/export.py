"""Print the data of a stack that `stack adopt` needs."""

import click

from stoker_client.cli._output import emit_data
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.pass_obj
def command(session: Session, stack: str) -> None:
    emit_data("json", session.client.stacks.export(stack))
