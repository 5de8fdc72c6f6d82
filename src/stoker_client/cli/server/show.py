"""Show a server."""

import click

from stoker_client.cli._output import emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("server")
@output_option
@click.pass_obj
def command(session: Session, server: str, form: str) -> None:
    emit_one(form, session.client.servers.show(server))
