"""List what a user is in which projects."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("user")
@output_option
@click.pass_obj
def command(session: Session, user: str, form: str) -> None:
    found = session.client.identity.roles(user)
    rows = [{"project": each["scope"]["project"]["name"], "role": each["role"]["name"]} for each in found]
    emit_list(form, rows, ("project", "role"))
