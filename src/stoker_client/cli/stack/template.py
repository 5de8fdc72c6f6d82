"""Show the template of a stack."""

import click

from stoker_client.cli._output import Output, emit_data, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@output_option
@click.pass_obj
def command(session: Session, stack: str, output: Output) -> None:
    emit_data(output.data_form, session.client.stacks.template(stack))
