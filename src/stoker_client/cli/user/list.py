"""List users."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_list(form, session.client.identity.users(), ("id", "name", "enabled", "default_project_id"))
