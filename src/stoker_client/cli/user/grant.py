"""Give a user a role in a project."""

import click

from stoker_client.cli._session import Session


@click.command()
@click.argument("user")
@click.option("--project", required=True, metavar="PROJECT")
@click.option("--role", required=True, type=click.Choice(["admin", "member", "reader"]))
@click.pass_obj
def command(session: Session, user: str, project: str, role: str) -> None:
    session.client.identity.grant(user, project, role)
