"""Delete entries from the catalog. Stacks that use them keep their copies."""

from collections.abc import Sequence

import click

from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session
from stoker_client.cli._versions import delete_versions, versioned_name


@click.command()
@click.argument("entries", type=versioned_name, nargs=-1, required=True, metavar="NAME/VERSION...")
@yes_option
@click.pass_obj
def command(session: Session, entries: Sequence[tuple[str, int]], yes: bool) -> None:
    delete_versions(entries, "catalog entry", session.client.catalog.delete, yes=yes)
