"""Create an EC2 credential for your project."""

import click

from stoker_client.cli._output import emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_one(form, session.client.identity.create_ec2_credential(), ("access", "secret", "tenant_id", "user_id"))
