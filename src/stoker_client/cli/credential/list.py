"""List your application credentials."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    credentials = session.client.identity.credentials()
    rows = [{**credential, "roles": [role["name"] for role in credential["roles"]]} for credential in credentials]
    emit_list(output, rows, ("id", "name", "project_id", "roles", "expires_at"))
