"""Prints triggers: once, or until they end with the state of each server and failures as they happen."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

from stoker_client.cli._output import Output, echo, emit_data, emit_one, open_console, printable
from stoker_client.cli._targets import counts, run_of, title
from stoker_client.cli._wait import explaining_interrupt
from stoker_client.client import Client
from stoker_client.errors import Refused
from stoker_client.failure_text import failure_text
from stoker_client.shapes import Target, Trigger
from stoker_client.trigger_watch import Watch

if TYPE_CHECKING:
    from stoker_client.cli._trigger_views import View


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


def describe_continuation(id_: str, again: str = "") -> str:
    """Return a message for a trigger that continues. ``again`` is the command that shows it later."""
    again = again or f"stoker trigger show --follow {id_}"
    return f"the trigger continues: `{again}` shows it, `stoker trigger cancel {id_}` ends it"


def follow_trigger(ctx: click.Context, client: Client, id_: str, output: Output) -> NoReturn:
    """Show a trigger until it ends, and end the command with the highest exit code of its runs."""
    with explaining_interrupt(describe_continuation(id_), doing="watching"):
        watch = follow(client, id_)
    if output.is_data:
        emit_data(output.form, {**watch.trigger, "targets": watch.targets})
    if line := failure_line(watch):
        echo(f"stoker: {line}", err=True)
    ctx.exit(watch.exit_code)


def follow(client: Client, id_: str) -> Watch:
    """Show the trigger until it ends."""
    watch = Watch(client.triggers, id_)
    reported: set[int] = set()
    with _view() as view:
        for target, log in watch.changes():
            if log is not None:
                view.add_output(log)
                continue
            view.update(watch, target)
            if target is not None and target["status"] == "FAILED" and target["position"] not in reported:
                reported.add(target["position"])
                view.print_line(describe_failure(client, watch, target))
    return watch


def failure_line(watch: Watch) -> str:
    """Return a line about the result of a trigger, or "" if it is complete."""
    trigger = watch.trigger
    if trigger["status"] == "COMPLETE":
        return ""
    return printable(f"{title(trigger)} is {trigger['status']}: {trigger.get('status_reason') or counts(trigger)}")


def _view() -> View:
    # imported here because rich is slow, and only watching needs it
    from stoker_client.cli._trigger_views import TriggerLines, TriggerTable

    if not sys.stderr.isatty():
        return TriggerLines()
    return TriggerTable(open_console(stderr=True))


def describe_failure(client: Client, watch: Watch, target: Target) -> str:
    """Return a line about the failure of one target."""
    return f"{watch.labels.of(target)}: {failure_text(target.get('status_reason'), _outputs(client, target))}"


def _outputs(client: Client, target: Target) -> Mapping[str, Any]:
    """Return the output values of the run, or those of its deployment."""
    run = run_of(target)
    code = {"deploy_status_code": run.get("status_code")}
    values = run.get("output_values") or {}
    if values.get("deploy_stderr") is not None or not target.get("deployment_id"):
        return {**code, **values}
    try:
        deployment = client.deployments.show(str(target["deployment_id"]), patient=True)
    except Refused:
        return code  # already deleted; the status reason suffices
    return {**code, **(deployment.get("output_values") or {})}
