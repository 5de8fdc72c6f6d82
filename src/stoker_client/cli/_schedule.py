"""What the commands on schedules share: when a trigger comes."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

FIELDS = (
    "id", "name", "trigger", "cron", "at", "timezone", "in_window", "missed", "enabled", "next_time", "last_time",
    "last_trigger_id", "last_error", "times", "times_missed", "asked_by", "creation_time",
)  # fmt: skip

_OPTIONS = [
    click.option("--name", metavar="NAME", help="What it is called (else: what it runs)."),
    click.option("--cron", metavar="CRON", help="Whenever this is due: minute hour day month weekday."),
    click.option("--at", metavar="TIME", help="Once, then: 2031-05-06T02:30:00Z."),
    click.option("--timezone", metavar="ZONE", help="What --cron is meant in (default: UTC)."),
    click.option(
        "--in-window/--any-time", "in_window", default=None,
        help="Whether each server waits for its maintenance window.",
    ),
    click.option(
        "--missed", type=click.Choice(["RUN", "SKIP"], case_sensitive=False),
        help="What is done about times that came while the service was down.",
    ),
]  # fmt: skip


def schedule_options(command: F) -> F:
    """Put the shared options on ``command``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def changed(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the user said."""
    return {key: value for key, value in given.items() if value is not None}
