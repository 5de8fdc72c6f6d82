"""``--wait`` on stacks: show what happens, and turn a bad end into an error."""

import sys

import click

from stoker_client.cli._failures import Failures
from stoker_client.cli._live import Lines, LiveTree, Progress
from stoker_client.cli._output import emit_data, emit_list, emit_one
from stoker_client.cli._words import LastWords
from stoker_client.client import Client
from stoker_client.errors import ClientError, NotFound
from stoker_client.shapes import Stack
from stoker_client.watch import Snapshot, watch

SUMMARY = ("id", "stack_name", "stack_status", "stack_status_reason", "creation_time", "updated_time")


def wait_for(client: Client, ref: str, action: str) -> None:
    """Watch the stack ``ref`` (``name/id``) until ``action`` is complete; fail if it ends otherwise."""
    failures = Failures(client)
    try:
        final = _shown(client, ref, failures)
    except KeyboardInterrupt:
        name = ref.partition("/")[0]
        click.echo(f"stoker: no longer watching; {name} goes on (`stoker stack show {name}`)", err=True)
        raise
    if final.status != f"{action}_COMPLETE":
        failures.tell(final)
        reason = final.stack.get("stack_status_reason") or "no reason given"
        raise ClientError(f"{final.stack['stack_name']} is {final.status}: {reason}")


def wait_deleted(client: Client, ref: str) -> None:
    """Watch the stack ``ref`` (``name/id``) until it is gone, which it may be before the first look."""
    try:
        wait_for(client, ref, "DELETE")
    except NotFound:
        return


def _shown(client: Client, ref: str, failures: Failures) -> Snapshot:
    with _progress(client) as progress:
        for snapshot in watch(client.stacks, ref):
            progress.update(snapshot)
            failures.note(snapshot)
    return snapshot


def _progress(client: Client) -> Progress:
    if not sys.stderr.isatty():
        return Lines()
    from rich.console import Console

    return LiveTree(Console(stderr=True, highlight=False), LastWords(client.deployments))


def emit_result(form: str, stack: Stack, *, outputs: bool) -> None:
    """Print a stack after a change: in a table its ``outputs`` when they are wanted and there are any."""
    if form != "table":
        emit_data(form, stack)
    elif outputs and stack.get("outputs"):
        emit_list(form, stack["outputs"], ("output_key", "output_value"))
    else:
        emit_one(form, stack, SUMMARY)
