"""Show a server."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("server")
@output_option
@click.pass_obj
def command(session: Session, server: str, output: Output) -> None:
    emit_one(output, session.client.servers.show(server))
