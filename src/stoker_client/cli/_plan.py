"""A plan for people: what an update would do, in colour, and what runs again on which servers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from stoker_client.cli._output import printable
from stoker_client.shapes import Change

#: (kind, sign, colour, word)
_KINDS = (
    ("added", "+", "green", "is added"),
    ("updated", "~", "yellow", "is updated in place"),
    ("replaced", "±", "magenta", "is replaced"),
    ("deleted", "-", "red", "is deleted"),
)
_DEPLOYMENTS = ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")


def show_plan(changes: Mapping[str, Sequence[Change]]) -> None:
    """Print it; click leaves the colours out where nobody can see them."""
    for kind, sign, colour, word in _KINDS:
        for change in sorted(changes.get(kind) or (), key=lambda each: each["resource_name"]):
            name = printable(f"{sign} {change['resource_name']}")
            click.echo(f"{click.style(name, fg=colour)} ({change['resource_type']}) {word}{_why(kind, change)}")
    counts = [f"{len(changes.get(kind) or ())} {kind}" for kind, *_ in _KINDS]
    click.echo(f"{', '.join(counts)}, {len(changes.get('unchanged') or ())} unchanged")
    for line in _runs(changes):
        click.echo(printable(line))


def _why(kind: str, change: Change) -> str:
    differing = change.get("changed_properties") or []
    if kind not in ("updated", "replaced"):
        return ""
    if not differing:
        return ": it failed before" if kind == "replaced" else ""
    return printable(f": {', '.join(differing)} {'differs' if len(differing) == 1 else 'differ'}")


def _runs(changes: Mapping[str, Sequence[Change]]) -> Iterator[str]:
    """What servers would have to do."""
    for kind, action in (("added", "CREATE"), ("replaced", "CREATE"), ("updated", "UPDATE")):
        for change in changes.get(kind) or ():
            properties: Mapping[str, Any] = change.get("properties") or {}
            if change["resource_type"] in _DEPLOYMENTS and action in (properties.get("actions") or ()):
                server = properties.get("server") or "a server that is not there yet"
                yield f"runs: {change['resource_name']} on {server}"
