"""Shows what the runs of a PREVIEW trigger would change on their servers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from stoker_client.cli._output import echo
from stoker_client.cli._runs import describe_changes, run_of, summarize_changes, summary_of
from stoker_client.client import Client
from stoker_client.collection import Anything
from stoker_client.shapes import Target, Trigger
from stoker_client.triggers import RUNNING, TargetLabels
from stoker_client.updates import attempts

#: Seconds that a command waits for all previews.
PATIENCE = 300.0


def take_preview(client: Client, id_: str, until: float) -> Trigger:
    """Wait for the trigger and delete it. Return it as it is after its end, or at the time ``until``."""
    try:
        return _wait_for_preview(client, id_, until)
    finally:
        delete_preview(client, id_)


def _wait_for_preview(client: Client, id_: str, until: float) -> Trigger:
    """Return the trigger after its end, or as it is at the time ``until`` (time.monotonic)."""
    for _ in attempts(until):
        trigger = client.triggers.show(id_, patient=True)
        if trigger["status"] != RUNNING:
            break
    return trigger


def delete_preview(client: Client, id_: str) -> None:
    """Delete the trigger, and cancel it before if it has not ended."""
    if client.triggers.show(id_, patient=True)["status"] == RUNNING:
        client.triggers.cancel(id_, force=True)
        _wait_for_preview(client, id_, time.monotonic() + PATIENCE)
    client.triggers.delete(id_)


def show_previews(client: Client, previews: Sequence[Anything]) -> None:
    """Print what the deployments of a stack would change, or why that is not known. Deletes the triggers."""
    for preview, trigger in _take_all(client, previews):
        if trigger is None:
            echo(f"{preview['resource_name']}: unknown: {preview.get('reason')}")
        else:
            show_targets(preview["resource_name"], trigger)


def list_previews(client: Client, previews: Sequence[Anything]) -> list[Anything]:
    """Return the previews with the targets of their triggers, which show the changes. Deletes the triggers."""
    return [
        {**preview, "targets": (trigger or {}).get("targets") or []} for preview, trigger in _take_all(client, previews)
    ]


def _take_all(client: Client, previews: Sequence[Anything]) -> Iterator[tuple[Anything, Trigger | None]]:
    """Yield each preview with its trigger, which is deleted then. If interrupted, delete the rest."""
    until = time.monotonic() + PATIENCE
    remaining = [id_ for preview in previews if (id_ := preview.get("trigger_id"))]
    try:
        for preview in previews:
            id_ = preview.get("trigger_id")
            if id_ is not None:
                remaining.remove(id_)
            yield preview, take_preview(client, id_, until) if id_ is not None else None
    finally:
        for id_ in remaining:
            delete_preview(client, id_)


def show_targets(title: str, trigger: Trigger) -> None:
    """Print what each server of a preview would change."""
    targets = trigger.get("targets") or []
    labels = TargetLabels(targets)
    for target in targets:
        _show(f"{title} on {labels.of(target)}", target)


def _show(title: str, target: Target) -> None:
    run = run_of(target)
    if target["status"] == RUNNING:
        words = "unknown: its agent has not answered in time"
    elif target["status"] != "COMPLETE":
        words = f"the preview is {target['status']}: {summary_of(target)}"
    else:
        words = summarize_changes(run) or f"unknown: {summary_of(target)}"
    echo(f"{title}: {words}")
    for line in describe_changes(run.get("changes") or ()).splitlines():
        echo("  ", nl=False)
        echo(line)
