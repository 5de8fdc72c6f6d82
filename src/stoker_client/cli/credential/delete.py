"""Delete application credentials; their tokens become invalid at once."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("credentials", nargs=-1, required=True, metavar="CREDENTIAL...")
@yes_option
@click.pass_obj
def command(session: Session, credentials: Sequence[str], yes: bool) -> None:
    delete_each(credentials, "credential", session.client.identity.delete_credential, yes=yes)
