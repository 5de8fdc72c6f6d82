"""Delete relays and revoke their keys; their agents then need another URL of Stoker."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("relays", nargs=-1, required=True, metavar="RELAY...")
@yes_option
@click.pass_obj
def command(session: Session, relays: Sequence[str], yes: bool) -> None:
    delete_each(relays, "relay", session.client.relays.delete, yes=yes)
