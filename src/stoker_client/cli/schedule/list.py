"""List the schedules of the project."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

COLUMNS = ("id", "name", "cron", "at", "enabled", "next_time", "last_error")
WIDE = (
    "timezone",
    "last_time",
    "last_trigger_id",
    "misfire_policy",
    "overlap_policy",
    "require_window",
    "creation_time",
)


@click.command()
@list_options()
@click.pass_obj
def command(session: Session, output: Output) -> None:
    emit_list(output, session.client.schedules.all(), COLUMNS, wide=WIDE, order="name")
