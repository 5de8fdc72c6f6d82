"""Delete schedules and keep their triggers."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("schedules", nargs=-1, required=True, metavar="SCHEDULE...")
@yes_option
@click.pass_obj
def command(session: Session, schedules: Sequence[str], yes: bool) -> None:
    delete_each(schedules, "schedule", session.client.schedules.delete, yes=yes)
