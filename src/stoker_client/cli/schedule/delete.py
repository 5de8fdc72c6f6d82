"""Delete schedules; the triggers that came of them stay."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("schedules", nargs=-1, required=True, metavar="SCHEDULE...")
@click.pass_obj
def command(session: Session, schedules: Sequence[str]) -> None:
    end(each(schedules, session.client.schedules.delete))
