"""Delete projects that have nothing left in them."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("projects", nargs=-1, required=True, metavar="PROJECT...")
@click.pass_obj
def command(session: Session, projects: Sequence[str]) -> None:
    end(each(projects, session.client.identity.delete_project))
