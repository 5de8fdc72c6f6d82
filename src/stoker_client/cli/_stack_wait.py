"""The option ``--wait`` for stacks: shows progress, and reports a failed operation as an error."""

import sys

import click

from stoker_client.cli._failures import Failures
from stoker_client.cli._last_output import LastOutput
from stoker_client.cli._live import Lines, LiveTree, Progress
from stoker_client.cli._output import Output, emit_data, emit_list, emit_one, open_console
from stoker_client.client import Client
from stoker_client.errors import ClientError, NotFound
from stoker_client.shapes import Stack
from stoker_client.watch import Snapshot, watch

SUMMARY = ("id", "stack_name", "stack_status", "stack_status_reason", "creation_time", "updated_time")


def wait_for(client: Client, ref: str, action: str) -> None:
    """Watch the stack ``ref`` (``name/id``) until ``action`` is complete. Raises ClientError if it fails."""
    failures = Failures(client)
    try:
        final = _display(client, ref, failures)
    except KeyboardInterrupt:
        name = ref.partition("/")[0]
        click.echo(f"stoker: no longer watching; {name} continues (`stoker stack show {name}`)", err=True)
        raise
    if final.status != f"{action}_COMPLETE":
        rest = failures.report(final)
        raise ClientError(f"{final.stack['stack_name']} is {final.status}{f': {rest}' if rest else ''}")


def wait_deleted(client: Client, ref: str) -> None:
    """Watch the stack ``ref`` (``name/id``) until it no longer exists, possibly from the beginning."""
    try:
        wait_for(client, ref, "DELETE")
    except NotFound:
        return


def _display(client: Client, ref: str, failures: Failures) -> Snapshot:
    with _progress(client) as progress:
        for snapshot in watch(client.stacks, ref):
            progress.update(snapshot)
            failures.note(snapshot)
    return snapshot


def _progress(client: Client) -> Progress:
    if not sys.stderr.isatty():
        return Lines()
    return LiveTree(open_console(stderr=True), LastOutput(client.deployments))


def emit_result(output: Output, stack: Stack, *, outputs: bool) -> None:
    """Print a stack after a change. A table shows the ``outputs`` if they are requested and not empty."""
    if output.is_data:
        emit_data(output.form, stack)
    elif outputs and stack.get("outputs"):
        emit_list(output, stack["outputs"], ("output_key", "output_value"))
    else:
        emit_one(output, stack, SUMMARY)
