"""Delete users; their tokens and credentials end at once."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("users", nargs=-1, required=True, metavar="USER...")
@click.pass_obj
def command(session: Session, users: Sequence[str]) -> None:
    end(each(users, session.client.identity.delete_user))
