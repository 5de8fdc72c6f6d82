"""Show a schedule: its trigger, its next time and the result of the last time."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._schedule import FIELDS
from stoker_client.cli._session import Session


@click.command()
@click.argument("schedule")
@output_option
@click.pass_obj
def command(session: Session, schedule: str, output: Output) -> None:
    emit_one(output, session.client.schedules.find(schedule), FIELDS)
