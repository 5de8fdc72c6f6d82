"""Schedules: run triggers once or repeatedly at set times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from stoker_client.cli._groups import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._options import duration, given_options, one_of, together
from stoker_client.cli._output import Output, echo, emit_list, emit_one, list_options, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._trigger_input import trigger_body, trigger_options, trigger_title

_FIELDS = (
    "id", "name", "trigger", "config_name", "cron", "at", "timezone", "require_window", "misfire_policy",
    "overlap_policy", "enabled", "next_time", "last_time",
    "last_trigger_id", "last_error", "run_count", "missed_count", "requested_by", "creation_time",
)  # fmt: skip
_NOUN = Noun("schedule", lambda client: client.schedules)
schedule = Group(
    commands=[
        _NOUN.list(
            "List the schedules of the project.",
            ("id", "name", "cron", "at", "enabled", "next_time", "last_error"),
            wide=(
                "timezone",
                "last_time",
                "last_trigger_id",
                "misfire_policy",
                "overlap_policy",
                "require_window",
                "creation_time",
            ),
            order="name",
        ),
        _NOUN.show("Show a schedule: its trigger, its next time and the result of the last time.", _FIELDS),
        _NOUN.delete("Delete schedules and keep their triggers."),
    ]
)


_schedule_options = together([
    click.option("--name", metavar="NAME", help="A name (default: the name of what it runs)."),
    click.option("--cron", metavar="CRON", help="A cron expression: minute hour day month weekday."),
    click.option("--at", metavar="TIME", help="A single time: 2031-05-06T02:30:00Z."),
    click.option("--timezone", metavar="ZONE", help="The time zone of --cron (default: UTC)."),
    click.option(
        "--require-window/--any-time", "require_window", default=None,
        help="Whether each server waits for its maintenance window.",
    ),
    click.option(
        "--misfire-policy", type=click.Choice(["RUN", "SKIP"], case_sensitive=False),
        help="What to do about times that passed while the service was down: RUN once, or SKIP.",
    ),
    click.option(
        "--overlap-policy", type=click.Choice(["REPLACE", "QUEUE"], case_sensitive=False),
        help="What to do about runs of earlier times that have not started: REPLACE them by the next, or QUEUE all.",
    ),
])  # fmt: skip


_PLAN = ("name", "cron", "at", "timezone", "require_window", "misfire_policy", "overlap_policy")


@schedule.command("create")
@trigger_options
@_schedule_options
@click.option("--disabled", is_flag=True, help="Create the schedule disabled, until `stoker schedule set --enable`.")
@output_option
@click.pass_obj
def create(session: Session, /, *, disabled: bool, output: Output, **options: Any) -> None:
    """Schedule a trigger: once with --at, repeatedly with --cron.

    The arguments that select what runs, and where, are those of `stoker trigger create`.

    \b
      stoker schedule create app database BACKUP --cron '30 2 * * *' --timezone Europe/Vienna --name nightly
      stoker schedule create app database BACKUP --at 2031-05-06T02:30:00Z --require-window
    """
    plan = given_options({key: options.pop(key) for key in _PLAN})
    if not one_of("cron" in plan, "at" in plan):
        raise click.UsageError("give either --cron or --at")
    trigger = trigger_body(session, **options)
    plan = {"name": trigger_title(**options), **plan, "trigger": trigger, "enabled": not disabled}
    schedule = session.client.schedules.create(plan)
    emit_one(output, schedule, _FIELDS)


@schedule.command("forecast")
@click.option("--within", type=duration, default="7d", show_default=True, metavar="DURATION", help="From now on.")
@list_options(limit=100)
@click.pass_obj
def forecast(session: Session, within: timedelta, output: Output) -> None:
    """List the next times of all schedules, with the servers that will wait for a maintenance window."""
    until = (datetime.now(UTC) + within).strftime("%Y-%m-%dT%H:%M:%SZ")
    times, more = session.client.schedules.forecast(until=until, limit=output.first)
    columns = ("time", "schedule_name", "servers", "waiting", "waits_until", "problem")
    emit_list(output, times, columns, wide=("schedule_id",))
    if more:
        echo("stoker: there are more times: use a greater --limit, or a shorter --within", err=True)


@schedule.command("run")
@click.argument("schedule")
@output_option
@click.pass_obj
def run(session: Session, schedule: str, output: Output) -> None:
    """Start the trigger of a schedule now, in addition to its times."""
    trigger = session.client.schedules.run(schedule)
    emit_one(output, trigger, ("id", "name", "action", "status", "total"))


@schedule.command("set")
@click.argument("schedule")
@_schedule_options
@click.option("--enable/--disable", "enabled", default=None, help="Enable or disable the schedule.")
@output_option
@click.pass_obj
def set_(session: Session, /, *, schedule: str, output: Output, **options: Any) -> None:
    """Change the times of a schedule."""
    changes = given_options(options)
    if not changes:
        raise click.UsageError("nothing to change: give at least one option")
    if "cron" in changes and "at" in changes:
        raise click.UsageError("give either --cron or --at")
    emit_one(output, session.client.schedules.change(schedule, changes), _FIELDS)
