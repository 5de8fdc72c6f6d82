"""
The option ``--follow`` for triggers: the state of each server, failures as they happen, and the highest exit code.
"""

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import click

from stoker_client.cli._output import echo, open_console, printable
from stoker_client.cli._targets import counts, run_of, title
from stoker_client.cli._trigger_views import TriggerLines, TriggerTable, View
from stoker_client.client import Client
from stoker_client.errors import Refused
from stoker_client.failure_text import failure_text
from stoker_client.shapes import Target
from stoker_client.trigger_watch import Watch


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


def exit_with(ctx: click.Context, watch: Watch) -> NoReturn:
    """End the command with the highest exit code of the runs, and print a failure on stderr."""
    if line := failure_line(watch):
        echo(f"stoker: {line}", err=True)
    ctx.exit(watch.exit_code)


def failure_line(watch: Watch) -> str:
    """Return a line about the result of a trigger, or "" if it is complete."""
    trigger = watch.trigger
    if trigger["status"] == "COMPLETE":
        return ""
    return printable(f"{title(trigger)} is {trigger['status']}: {trigger.get('status_reason') or counts(trigger)}")


def _view() -> View:
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
