"""Give a user a new password; all their tokens become invalid."""

import click

from stoker_client.cli._session import Session


@click.command()
@click.argument("user")
@click.password_option(
    help="Other users of the machine can read a command line: without this option, the command prompts."
)
@click.pass_obj
def command(session: Session, user: str, password: str) -> None:
    session.client.identity.change_user(user, password=password)
    click.echo(f"the password of user {user} is changed")
