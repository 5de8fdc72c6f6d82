"""Shows what the runs of a PREVIEW trigger would change on their servers."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from stoker_client.cli._changes import describe_changes, summarize_changes
from stoker_client.cli._output import echo
from stoker_client.cli._targets import name_of, run_of, summary_of
from stoker_client.client import Client
from stoker_client.shapes import ServerPreview, Target, Trigger

RUNNING = "IN_PROGRESS"
#: Seconds that a command waits for all previews, and between two requests.
PATIENCE, PAUSE = 300.0, 0.5


def wait_for_preview(client: Client, id_: str, until: float) -> Trigger:
    """Return the trigger after its end, or as it is at the time ``until`` (time.monotonic)."""
    trigger = client.triggers.show(id_, patient=True)
    while trigger["status"] == RUNNING and time.monotonic() < until:
        time.sleep(PAUSE)
        trigger = client.triggers.show(id_, patient=True)
    return trigger


def show_preview(client: Client, id_: str, title: str, until: float) -> Trigger:
    """Wait for the trigger, print what each server would change, and delete the trigger. Return the trigger."""
    trigger = wait_for_preview(client, id_, until)
    for target in trigger.get("targets") or []:
        _show(title, target)
    if trigger["status"] == RUNNING:
        client.triggers.cancel(id_, force=True)
        trigger = wait_for_preview(client, id_, time.monotonic() + PATIENCE)
    client.triggers.delete(id_)
    return trigger


def show_previews(client: Client, previews: Sequence[ServerPreview]) -> None:
    """Print what the deployments of an update would change, or why that is not known. Deletes the triggers."""
    until = time.monotonic() + PATIENCE
    for preview in previews:
        name, id_ = preview["resource_name"], preview.get("trigger_id")
        if id_ is None:
            echo(f"{name}: unknown: {preview.get('reason')}")
        else:
            show_preview(client, id_, name, until)


def _show(title: str, target: Target) -> None:
    run = run_of(target)
    if target["status"] == RUNNING:
        words = "unknown: its agent has not answered in time"
    elif target["status"] != "COMPLETE":
        words = f"the preview is {target['status']}: {summary_of(target)}"
    else:
        words = summarize_changes(run) or f"unknown: {summary_of(target)}"
    echo(f"{title} on {name_of(target)}: {words}")
    for line in describe_changes(run.get("changes") or ()).splitlines():
        click.echo("  ", nl=False)
        echo(line)
