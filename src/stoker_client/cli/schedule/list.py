"""List the schedules of the project."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session

COLUMNS = ("id", "name", "cron", "at", "timezone", "enabled", "next_time", "last_time", "last_error")


@click.command()
@output_option
@click.pass_obj
def command(session: Session, form: str) -> None:
    emit_list(form, session.client.schedules.all(), COLUMNS)
