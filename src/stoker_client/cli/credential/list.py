"""List your application credentials."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    found = session.client.identity.credentials()
    rows = [{**each, "roles": [role["name"] for role in each["roles"]]} for each in found]
    emit_list(form, rows, ("id", "name", "project_id", "roles", "expires_at"))
