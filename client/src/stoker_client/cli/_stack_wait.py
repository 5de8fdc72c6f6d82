"""The option ``--wait`` for stacks: shows progress, and reports a failed operation as an error."""

import re
import sys

from stoker_client.cli._output import Output, echo, emit_data, emit_list, emit_one, open_console
from stoker_client.cli._wait import explaining_interrupt
from stoker_client.client import Client
from stoker_client.errors import ClientError, NotFound
from stoker_client.failure_text import failure_text
from stoker_client.shapes import Event, Stack
from stoker_client.stacks import Operation, is_of_stack
from stoker_client.watch import Snapshot, watch

SUMMARY = ("id", "stack_name", "stack_status", "stack_status_reason", "creation_time", "updated_time")


def wait_for(client: Client, operation: Operation, status: str) -> None:
    """
    Watch ``operation`` until the stack has ``status``.

    Raises ClientError if the stack gets another status, or if another client's operation supersedes this one.
    """
    name = operation.ref.partition("/")[0]
    with explaining_interrupt(f"{name} continues (`stoker stack show {name}`)", doing="watching"):
        final = _display(client, operation)
    if final.superseded_by is None and final.status == status:
        return
    lines = failure_lines(final)
    for line in lines:
        echo(line, err=True)
    if final.superseded_by is not None:
        other = "another" if status.startswith(final.superseded_by) else "a later"
        raise ClientError(f"{name}: superseded by {other} {final.superseded_by.lower()} (`stoker stack events {name}`)")
    rest = logs_hint(final) if lines else failure_text(final.reason)
    raise ClientError(f"{name} is {final.status}{f': {rest}' if rest else ''}")


def wait_deleted(client: Client, operation: Operation) -> None:
    """Watch the deletion of a stack until the stack no longer exists, possibly from the beginning."""
    try:
        wait_for(client, operation, "DELETE_COMPLETE")
    except NotFound:
        return


def _display(client: Client, operation: Operation) -> Snapshot:
    # imported here because rich is slow, and only watching needs it
    from stoker_client.cli._live import LastOutput, Lines, LiveStack, Progress

    is_terminal = sys.stderr.isatty()
    progress: Progress = (
        LiveStack(open_console(stderr=True), LastOutput(client.deployments)) if is_terminal else Lines()
    )
    with progress:
        for snapshot in watch(client.stacks, operation, with_resources=is_terminal):
            progress.update(snapshot)
    return snapshot


def emit_result(output: Output, stack: Stack, *, outputs: bool) -> None:
    """Print a stack after a change. A table shows the ``outputs`` if they are requested and not empty."""
    if output.is_data:
        emit_data(output.form, stack)
    elif outputs and stack.get("outputs"):
        emit_list(output, stack["outputs"], ("output_key", "output_value"))
    else:
        emit_one(output, stack, SUMMARY)


#: The path to the failed resource in a reason, such as ``resources.inner.resources.db``.
_PATH = re.compile(r"\w+: resources\.(\S+): ")
#: Heat's words for a run that has failed.
_RUN = "Deployment to server failed"


def failure_lines(snapshot: Snapshot) -> list[str]:
    """Return lines such as ``inner/db: exit 3 on web1: no space left``, from the events of the operation."""
    lines = (f"{_path(event)}: {failure_text(event.get('resource_status_reason'))}" for event in _failed(snapshot))
    return list(dict.fromkeys(lines))


def logs_hint(snapshot: Snapshot) -> str:
    """Return a hint at the output of a failed run that still is the newest run of its deployment, or ""."""
    if snapshot.status.startswith("ROLLBACK_"):
        return ""
    runs = [event for event in _failed(snapshot) if _RUN in (event.get("resource_status_reason") or "")]
    return f"see `stoker deployment logs {snapshot.name}/{_path(runs[0])}`" if runs else ""


def _failed(snapshot: Snapshot) -> list[Event]:
    return [
        event
        for event in snapshot.events
        if event["resource_status"].endswith("_FAILED") and not is_of_stack(event, snapshot.ref)
    ]


def _path(event: Event) -> str:
    match = _PATH.match(event.get("resource_status_reason") or "")
    return match[1].replace(".resources.", "/") if match else event["resource_name"]
