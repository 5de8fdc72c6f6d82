"""Prints triggers, once or until they end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from stoker_client.cli._output import Output, echo, emit_data, emit_one
from stoker_client.client import Client
from stoker_client.shapes import Trigger

FIELDS = (
    "id", "name", "action", "source", "status", "status_reason", "total", "queued", "running", "complete", "failed",
    "cancelled", "changed", "unchanged", "input_values", "max_concurrent", "max_fail_percentage", "canary",
    "requested_by", "schedule_id", "creation_time", "end_time",
)  # fmt: skip

follow_option = click.option(
    "-f", "--follow", is_flag=True, help="Show all servers until the trigger ends; exit with the highest exit code."
)


def emit_trigger(output: Output, trigger: Trigger) -> None:
    """Print a trigger that has begun."""
    emit_one(output, {name: value for name, value in trigger.items() if name != "targets" or output.is_data}, FIELDS)


@contextmanager
def explaining_interrupt(what: str) -> Iterator[None]:
    """Print a message after Ctrl-C, which ends only the watch. ``what`` describes the trigger's state."""
    try:
        yield
    except KeyboardInterrupt:
        echo(f"stoker: no longer watching; {what}", err=True)
        raise


def describe_continuation(id_: str, again: str = "") -> str:
    """Return a message for a trigger that continues. ``again`` is the command that shows it later."""
    again = again or f"stoker trigger show --follow {id_}"
    return f"the trigger continues: `{again}` shows it, `stoker trigger cancel {id_}` ends it"


def follow_trigger(ctx: click.Context, client: Client, id_: str, output: Output) -> NoReturn:
    """Show a trigger until it ends, and end the command with the highest exit code of its runs."""
    with explaining_interrupt(describe_continuation(id_)):
        # imported here because rich is slow, and only watching needs it
        from stoker_client.cli._trigger_follow import exit_with, follow

        watch = follow(client, id_)
    if output.is_data:
        emit_data(output.form, {**watch.trigger, "targets": watch.targets})
    exit_with(ctx, watch)
