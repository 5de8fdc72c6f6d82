"""List your application credentials."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    found = session.client.identity.credentials()
    rows = [{**each, "roles": [role["name"] for role in each["roles"]]} for each in found]
    emit_list(output, rows, ("id", "name", "project_id", "roles", "expires_at"))
