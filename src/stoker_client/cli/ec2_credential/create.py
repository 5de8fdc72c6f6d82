"""Create an EC2 credential for your project. Keep its secret: it is not shown again."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@output_option
@click.pass_obj
def command(session: Session, output: Output) -> None:
    emit_one(output, session.client.identity.create_ec2_credential(), ("access", "secret", "tenant_id", "user_id"))
