"""Schedule a trigger: once with --at, repeatedly with --cron.

The arguments that select what runs, and where, are those of `stoker trigger create`.

\b
  stoker schedule create app database BACKUP --cron '30 2 * * *' --timezone Europe/Vienna --name nightly
  stoker schedule create app database BACKUP --at 2031-05-06T02:30:00Z --require-window
"""

from typing import Any

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._schedule import FIELDS, schedule_options
from stoker_client.cli._session import Session
from stoker_client.cli._trigger_input import TriggerInput, trigger_options
from stoker_client.cli._values import given_options, one_of

PLAN = ("name", "cron", "at", "timezone", "require_window", "misfire_policy", "overlap_policy")


@click.command()
@trigger_options
@schedule_options
@click.option("--disabled", is_flag=True, help="Create the schedule disabled, until `stoker schedule set --enable`.")
@output_option
@click.pass_obj
def command(session: Session, /, *, disabled: bool, output: Output, **options: Any) -> None:
    plan = given_options({key: options.pop(key) for key in PLAN})
    if not one_of("cron" in plan, "at" in plan):
        raise click.UsageError("say when, either with --cron or with --at")
    trigger_input = TriggerInput(**options)
    trigger = trigger_input.body(lambda: session.client)
    plan = {"name": trigger_input.title, **plan, "trigger": trigger, "enabled": not disabled}
    schedule = session.client.schedules.create(plan)
    emit_one(output, schedule, FIELDS)
