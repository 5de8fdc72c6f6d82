"""List projects: all for an administrator, else your own."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    emit_list(output, session.client.identity.projects(), ("id", "name", "enabled", "description"), order="name")
