"""List your EC2 credentials. Their secrets are shown only when they are created."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    emit_list(output, session.client.identity.ec2_credentials(), ("access", "tenant_id", "user_id"))
