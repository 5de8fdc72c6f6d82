"""Change the times of a schedule."""

from typing import Any

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._schedule import FIELDS, schedule_options
from stoker_client.cli._session import Session
from stoker_client.cli._values import given_options


@click.command()
@click.argument("schedule")
@schedule_options
@click.option("--enable/--disable", "enabled", default=None, help="Enable or disable the schedule.")
@output_option
@click.pass_obj
def command(session: Session, /, *, schedule: str, output: Output, **options: Any) -> None:
    changes = given_options(options)
    if not changes:
        raise click.UsageError("there is nothing to change: give one of the options")
    if "cron" in changes and "at" in changes:
        raise click.UsageError("say when, either with --cron or with --at")
    emit_one(output, session.client.schedules.change(schedule, changes), FIELDS)
