"""What commands print of a trigger: once, or as it goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from stoker_client.cli._output import emit_data, emit_one
from stoker_client.client import Client
from stoker_client.shapes import Trigger

FIELDS = (
    "id", "name", "action", "source", "status", "status_reason", "total", "queued", "running", "complete", "failed",
    "cancelled", "input_values", "max_concurrent", "max_fail_percentage", "asked_by", "schedule_id", "creation_time",
    "end_time",
)  # fmt: skip

follow_option = click.option(
    "-f", "--follow", is_flag=True, help="Show every server until all is done; exit with the worst code."
)


def emit_trigger(form: str, trigger: Trigger) -> None:
    """Print a trigger that has begun."""
    emit_one(form, trigger, FIELDS)


@contextmanager
def leaving(what: str) -> Iterator[None]:
    """Ctrl-C ends the watching and nothing else: say so, and ``what`` becomes of the trigger."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"stoker: no longer watching; {what}", err=True)
        raise


def goes_on(id_: str, again: str = "") -> str:
    """Of one that was only watched. ``again`` is the command that shows it later."""
    again = again or f"stoker trigger show --follow {id_}"
    return f"the trigger goes on: `{again}` shows it, `stoker trigger cancel {id_}` ends it"


def follow_trigger(ctx: click.Context, client: Client, id_: str, form: str) -> NoReturn:
    """Show a trigger until it is over, and end the command with the worst code of its runs."""
    with leaving(goes_on(id_)):
        from stoker_client.cli._trigger_follow import exit_with, follow  # rich: only for those who watch

        watch = follow(client, id_)
    if form != "table":
        emit_data(form, {**watch.trigger, "targets": watch.targets})
    exit_with(ctx, watch)
