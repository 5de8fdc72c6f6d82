"""Create an application credential for your project; its secret is not shown again."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@click.option("--role", "roles", multiple=True, help="A role of the credential (default: all of your roles).")
@click.option("--expires", metavar="TIME", help="Time of expiry, such as 2030-01-31T12:00:00 (UTC).")
@output_option
@click.pass_obj
def command(session: Session, name: str, roles: tuple[str, ...], expires: str | None, output: Output) -> None:
    credential = session.client.identity.create_credential(name, list(roles), expires)
    emit_one(output, credential, ("id", "name", "secret", "project_id", "expires_at"))
