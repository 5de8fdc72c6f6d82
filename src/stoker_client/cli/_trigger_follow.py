"""``--follow`` on triggers: every server's line, failures when they happen, and the worst code at the end."""

import sys
from typing import NoReturn

import click

from stoker_client.cli._failures import stderr_of
from stoker_client.cli._output import printable
from stoker_client.cli._targets import counts, name_of, run_of, title
from stoker_client.cli._trigger_views import TriggerLines, TriggerTable, View
from stoker_client.client import Client
from stoker_client.errors import Refused
from stoker_client.shapes import Target
from stoker_client.trigger_watch import Watch, target_code


def follow(client: Client, id_: str) -> Watch:
    """Show the trigger until it is over."""
    watch = Watch(client.triggers, id_)
    told: set[int] = set()
    with _view() as view:
        for target, log in watch.changes():
            if log is not None:
                view.hear(log)
                continue
            view.update(watch, target)
            if target is not None and target["status"] == "FAILED" and target["position"] not in told:
                told.add(target["position"])
                view.tell(_failure(client, target))
    return watch


def exit_with(ctx: click.Context, watch: Watch) -> NoReturn:
    """End the command: with a line that says what went wrong, if anything did, and the worst code of the runs."""
    if line := failure_line(watch):
        click.echo(f"stoker: {line}", err=True)
    ctx.exit(watch.exit_code)


def failure_line(watch: Watch) -> str:
    """What became of a trigger that is not complete; nothing of one that is."""
    trigger = watch.trigger
    if trigger["status"] == "COMPLETE":
        return ""
    return printable(f"{title(trigger)} is {trigger['status']}: {trigger.get('status_reason') or counts(trigger)}")


def _view() -> View:
    if not sys.stderr.isatty():
        return TriggerLines()
    from rich.console import Console

    return TriggerTable(Console(stderr=True, highlight=False))


def _failure(client: Client, target: Target) -> str:
    """What its script wrote to its standard error, below a line that says where."""
    reason = " ".join((target.get("status_reason") or "no reason given").split())
    head = f"{name_of(target)}: failed ({target_code(target)}): {reason}"
    return "\n".join([head, *(f"  {line}" for line in _stderr(client, target).rstrip("\n").splitlines())])


def _stderr(client: Client, target: Target) -> str:
    """From the run when it has it, else from its deployment."""
    said = (run_of(target).get("output_values") or {}).get("deploy_stderr")
    if said is not None or not target.get("deployment_id"):
        return str(said or "")
    try:
        return stderr_of(client.deployments.show(str(target["deployment_id"]), patient=True))
    except Refused:
        return ""  # gone already: its reason still tells
