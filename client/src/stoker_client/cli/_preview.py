"""Shows what the runs of a PREVIEW trigger would change on their servers."""

from __future__ import annotations

import time
from collections.abc import Sequence

from stoker_client.cli._output import echo
from stoker_client.cli._runs import describe_changes, run_of, summarize_changes, summary_of
from stoker_client.client import Client
from stoker_client.collection import Anything
from stoker_client.shapes import Target, Trigger
from stoker_client.triggers import RUNNING, TargetLabels
from stoker_client.updates import attempts

#: Seconds that a command waits for all previews.
PATIENCE = 300.0


def take_previews(client: Client, ids: Sequence[str]) -> list[Trigger]:
    """Wait for triggers, and delete them. Return them as they are after their ends, or when the patience is over."""
    until = time.monotonic() + PATIENCE
    try:
        return [_wait(client, id_, until) for id_ in ids]
    finally:
        for id_ in ids:
            _delete(client, id_)


def _wait(client: Client, id_: str, until: float) -> Trigger:
    """Return the trigger after its end, or as it is at the time ``until`` (time.monotonic)."""
    for _ in attempts(until):
        trigger = client.triggers.show(id_, patient=True)
        if trigger["status"] != RUNNING:
            break
    return trigger


def _delete(client: Client, id_: str) -> None:
    """Delete the trigger, and cancel it before if it has not ended."""
    if client.triggers.show(id_, patient=True)["status"] == RUNNING:
        client.triggers.cancel(id_, force=True)
        _wait(client, id_, time.monotonic() + PATIENCE)
    client.triggers.delete(id_)


def complete_previews(client: Client, previews: Sequence[Anything]) -> list[Anything]:
    """Return the previews of a stack's deployments with the targets of their triggers, which show the changes."""
    triggers = take_previews(client, [id_ for preview in previews if (id_ := preview.get("trigger_id"))])
    targets = {trigger["id"]: trigger.get("targets") or [] for trigger in triggers}
    return [{**preview, "targets": targets.get(str(preview.get("trigger_id")), [])} for preview in previews]


def show_preview(preview: Anything) -> None:
    """Print what a deployment of a stack would change, or why that is not known."""
    if preview.get("trigger_id") is None:
        echo(f"{preview['resource_name']}: unknown: {preview.get('reason')}")
    else:
        show_targets(preview["resource_name"], preview["targets"])


def show_targets(title: str, targets: Sequence[Target]) -> None:
    """Print what each server of a preview would change."""
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
    if changes := run.get("changes"):
        echo(describe_changes(changes, indentation="  "))
