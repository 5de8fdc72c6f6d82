"""Shows the plan of an operation: its changes, and the deployments that run on servers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from stoker_client.cli._output import Output, emit_data, printable
from stoker_client.client import Client
from stoker_client.deployments import DEPLOYMENT_TYPES
from stoker_client.shapes import Change, ServerPreview

#: (kind, sign, colour, word)
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
    previews: Sequence[ServerPreview] | None,
) -> None:
    """Print the plan, and what the previews show on servers. Deletes the triggers of the previews."""
    if not output.is_data:
        show_plan(changes)
    elif previews is None:
        emit_data(output.form, changes)
    if previews is None:
        return
    # imported here because only previews on servers need it
    from stoker_client.cli._server_preview import list_previews, show_previews

    if output.is_data:
        emit_data(output.form, {"resource_changes": changes, "server_previews": list_previews(client, previews)})
    else:
        show_previews(client, previews)


def show_plan(changes: Mapping[str, Sequence[Change]]) -> None:
    """Print the plan. click omits colours if the output is not a terminal."""
    for kind, sign, colour, word in _KINDS:
        for change in sorted(changes.get(kind) or (), key=lambda change: change["resource_name"]):
            name = printable(f"{sign} {change['resource_name']}")
            click.echo(f"{click.style(name, fg=colour)} ({change['resource_type']}) {word}{_why(kind, change)}")
    counts = [f"{len(changes.get(kind) or ())} {kind}" for kind, *_ in _KINDS]
    click.echo(f"{', '.join(counts)}, {len(changes.get('unchanged') or ())} unchanged")
    for line in _runs(changes):
        click.echo(printable(line))


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
        return ": it failed before" if kind == "replaced" else ""
    return printable(f": {', '.join(differing)} {'differs' if len(differing) == 1 else 'differ'}")


def _runs(changes: Mapping[str, Sequence[Change]]) -> Iterator[str]:
    """Yield the runs that servers would execute."""
    for kind, action in (("added", "CREATE"), ("replaced", "CREATE"), ("updated", "UPDATE")):
        for change in changes.get(kind) or ():
            properties: Mapping[str, Any] = change.get("properties") or {}
            if change["resource_type"] in DEPLOYMENT_TYPES and action in (properties.get("actions") or ()):
                server = properties.get("server") or "a server that is not there yet"
                yield f"runs: {change['resource_name']} on {server}"
