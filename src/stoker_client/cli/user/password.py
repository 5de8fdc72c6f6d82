"""Give a user a new password; all their tokens end."""

import click

from stoker_client.cli._session import Session


@click.command()
@click.argument("user")
@click.password_option(help="Better asked for than given: others see it.")
@click.pass_obj
def command(session: Session, user: str, password: str) -> None:
    session.client.identity.change_user(user, password=password)
    click.echo(f"the password of user {user} is changed")
