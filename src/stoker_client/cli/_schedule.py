"""Options of the schedule commands: the times of triggers."""

import click

from stoker_client.cli._options import together

FIELDS = (
    "id", "name", "trigger", "cron", "at", "timezone", "require_window", "misfire_policy", "overlap_policy", "enabled",
    "next_time", "last_time",
    "last_trigger_id", "last_error", "run_count", "missed_count", "requested_by", "creation_time",
)  # fmt: skip

schedule_options = together([
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
