"""Give a user a new password; all their tokens become invalid.

The command reads the password from standard input. On a terminal, it prompts for the password.
"""

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.cli.user._password import password_options, read_password


@click.command()
@click.argument("user")
@password_options
@click.pass_obj
def command(session: Session, user: str, password: str | None, password_file: str | None) -> None:
    session.client.identity.change_user(user, password=read_password(password, password_file))
    echo(f"the password of user {user} is changed")
