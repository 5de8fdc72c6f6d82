"""Delete empty projects."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("projects", nargs=-1, required=True, metavar="PROJECT...")
@yes_option
@click.pass_obj
def command(session: Session, projects: Sequence[str], yes: bool) -> None:
    delete_each(projects, "project", session.client.identity.delete_project, yes=yes)
