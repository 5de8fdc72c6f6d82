"""List projects: all for an administrator, else one's own."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_list(form, session.client.identity.projects(), ("id", "name", "enabled", "description"))
