"""Delete entries from the catalogue. Stacks that use them keep their copies."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session
from stoker_client.cli._versions import versioned_name


@click.command()
@click.argument("entries", type=versioned_name, nargs=-1, required=True, metavar="NAME/VERSION...")
@yes_option
@click.pass_obj
def command(session: Session, entries: Sequence[tuple[str, int]], yes: bool) -> None:
    names = {f"{name}/{version}": (name, version) for name, version in entries}
    delete_each(list(names), "catalogue entry", lambda ref: session.client.catalog.delete(*names[ref]), yes=yes)
