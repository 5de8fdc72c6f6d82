"""Waits until runs begin, and until deployments, stacks and triggers end, with their progress."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from stoker_client.cli._output import echo, open_console, printable
from stoker_client.cli._runs import counts, run_of, title
from stoker_client.client import Client
from stoker_client.deployments import RUNNING, name_of, server_name_of
from stoker_client.errors import ClientError, NotFound, Refused
from stoker_client.results import failure_text
from stoker_client.shapes import Deployment, Event, Target
from stoker_client.stacks import Operation, Snapshot, is_of_stack, watch
from stoker_client.triggers import Watch

#: The status reason of a deployment that waits for its agent only.
FOR_AGENT = "Waiting for the agent"


@contextmanager
def explaining_interrupt(what: str, *, doing: str = "waiting") -> Iterator[None]:
    """Print a message after Ctrl-C, which ends only the command: ``what`` describes the state of what continues."""
    try:
        yield
    except KeyboardInterrupt:
        echo(f"stoker: no longer {doing}; {what}", err=True)
        raise


def report_waiting(deployment: Deployment) -> None:
    """Print the reason why a new deployment waits, unless it only waits for its agent."""
    reason = deployment["status_reason"] or FOR_AGENT
    if deployment["status"] == RUNNING and reason.startswith("Waiting") and reason != FOR_AGENT:
        echo(f"stoker: {reason}", err=True)


def wait_for_deployment(client: Client, id_: str) -> Deployment:
    """Wait until a deployment ends. Raises ClientError if it failed."""
    wait_for_end(client, id_, f"continues (`stoker deployment cancel {id_}` ends it)")
    deployment = client.deployments.show(id_, patient=True)
    if deployment["status"] == "FAILED":
        raise ClientError(deployment_failure(deployment))
    return deployment


def wait_for_end(client: Client, id_: str, reminder: str) -> None:
    """Wait until a deployment ends. ``reminder`` describes its state after Ctrl-C."""
    with explaining_interrupt(f"deployment {id_} {reminder}"):
        client.deployments.wait(id_)


def deployment_failure(deployment: Deployment) -> str:
    """Return a line such as ``shop/setup on web1: exit 127: script: 7: nosuchcommand: not found``."""
    reason = failure_text(deployment["status_reason"], deployment.get("output_values"))
    return f"{name_of(deployment)} on {server_name_of(deployment)}: {reason}"


def wait_for_stack(client: Client, operation: Operation, status: str) -> None:
    """
    Watch ``operation`` until the stack has ``status``.

    Raises ClientError if the stack gets another status, or if another client's operation supersedes this one, and
    NotFound if the stack does not exist, unless it is to be deleted.
    """
    name = operation.ref.partition("/")[0]
    try:
        with explaining_interrupt(f"{name} continues (`stoker stack show {name}`)", doing="watching"):
            final = _display(client, operation)
    except NotFound:
        if status == "DELETE_COMPLETE":
            return
        raise
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


def _display(client: Client, operation: Operation) -> Snapshot:
    # imported here because rich is slow, and only watching needs it
    from stoker_client.cli._live import Lines, LiveStack

    is_terminal = sys.stderr.isatty()
    with LiveStack(open_console(stderr=True)) if is_terminal else nullcontext(Lines()) as progress:
        for snapshot in watch(client.stacks, operation, with_resources=is_terminal):
            progress.update(snapshot)
    return snapshot


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


def describe_continuation(id_: str, again: str = "") -> str:
    """Return a message for a trigger that continues. ``again`` is the command that shows it later."""
    again = again or f"stoker trigger show --follow {id_}"
    return f"the trigger continues: `{again}` shows it, `stoker trigger cancel {id_}` ends it"


def follow_trigger(client: Client, id_: str) -> Watch:
    """Show the trigger until it ends."""
    watch = Watch(client.triggers, id_)
    reported: set[int] = set()
    # imported here because rich is slow, and only watching needs it
    from stoker_client.cli._trigger_views import TriggerLines, TriggerTable

    with TriggerTable(open_console(stderr=True)) if sys.stderr.isatty() else nullcontext(TriggerLines()) as view:
        for target, log in watch.changes():
            if log is not None:
                view.add_output(log)
                continue
            view.update(watch, target)
            if target is not None and target["status"] == "FAILED" and target["position"] not in reported:
                reported.add(target["position"])
                view.print_line(describe_failure(client, watch, target))
    return watch


def trigger_failure(watch: Watch) -> str:
    """Return a line about the result of a trigger, or "" if it is complete."""
    trigger = watch.trigger
    if trigger["status"] == "COMPLETE":
        return ""
    return printable(f"{title(trigger)} is {trigger['status']}: {trigger.get('status_reason') or counts(trigger)}")


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
