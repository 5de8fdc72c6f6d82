"""List your EC2 credentials."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_list(form, session.client.identity.ec2_credentials(), ("access", "secret", "tenant_id", "user_id"))
