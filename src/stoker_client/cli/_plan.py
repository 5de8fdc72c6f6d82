"""Shows the plan of an operation: its changes, and the deployments that run on servers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from stoker_client.cli._output import Output, echo, emit_data, printable
from stoker_client.client import Client
from stoker_client.shapes import Change, PlannedRun, ServerPreview

#: (kind, sign, color, word)
_KINDS = (
    ("added", "+", "green", "is added"),
    ("updated", "~", "yellow", "is updated in place"),
    ("replaced", "±", "magenta", "is replaced"),
    ("deleted", "-", "red", "is deleted"),
)


def emit_plan(
    client: Client,
    output: Output,
    changes: Mapping[str, Sequence[Change]],
    runs: Sequence[PlannedRun],
    previews: Sequence[ServerPreview] | None,
) -> None:
    """Print the plan, and what the previews show on servers. Deletes the triggers of the previews."""
    if not output.is_data:
        show_plan(changes, runs)
    elif previews is None:
        emit_data(output.form, {**changes, "planned_runs": runs})
    if previews is None:
        return
    # imported here because only previews on servers need it
    from stoker_client.cli._server_preview import list_previews, show_previews

    if output.is_data:
        listed = list_previews(client, previews)
        emit_data(output.form, {"resource_changes": changes, "planned_runs": runs, "server_previews": listed})
    else:
        show_previews(client, previews)


def show_plan(changes: Mapping[str, Sequence[Change]], runs: Sequence[PlannedRun]) -> None:
    """Print the plan. click omits colors if the output is not a terminal."""
    for kind, sign, color, word in _KINDS:
        for change in sorted(changes.get(kind) or (), key=lambda change: change["resource_name"]):
            name = printable(f"{sign} {change['resource_name']}")
            echo(f"{click.style(name, fg=color)} ({change['resource_type']}) {word}{_why(kind, change)}")
    counts = [f"{len(changes.get(kind) or ())} {kind}" for kind, *_ in _KINDS]
    echo(f"{', '.join(counts)}, {len(changes.get('unchanged') or ())} unchanged")
    for run in runs:
        echo(printable(f"runs: {_describe(run)}"))


def flatten_resources(resources: Sequence[Any]) -> Iterator[Any]:
    """Yield all resources of a preview, including those of nested stacks, which are nested lists."""
    for item in resources:
        if isinstance(item, list):
            yield from flatten_resources(item)
        else:
            yield item


def _why(kind: str, change: Change) -> str:
    differing = change.get("changed_properties") or []
    if kind not in ("updated", "replaced"):
        return ""
    if not differing:
        return ": it failed before" if change.get("resource_status") == "FAILED" else ""
    return printable(f": {', '.join(differing)} {'differs' if len(differing) == 1 else 'differ'}")


def _describe(run: PlannedRun) -> str:
    """Return the action, the deployment and the server of a run. Runs on one server are in their order."""
    action = "the undo" if run["mode"] else run["action"]
    server = run["server_name"] or run["server_id"] or "a new server"
    return f"{action} of {run['resource_name']} on {server}"
