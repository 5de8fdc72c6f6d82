"""Show the template that a stack was made from."""

import click

from stoker_client.cli._output import emit_data, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@output_option
@click.pass_obj
def command(session: Session, stack: str, form: str) -> None:
    emit_data("yaml" if form == "table" else form, session.client.stacks.template(stack))
