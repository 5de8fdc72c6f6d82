"""Delete users; their tokens and credentials become invalid at once."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("users", nargs=-1, required=True, metavar="USER...")
@yes_option
@click.pass_obj
def command(session: Session, users: Sequence[str], yes: bool) -> None:
    delete_each(users, "user", session.client.identity.delete_user, yes=yes)
