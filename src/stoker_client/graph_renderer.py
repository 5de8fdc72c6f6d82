"""Draws a stack's dependency graph as DOT for Graphviz, or as SVG for a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from stoker_client.shapes import Resource

_FILL = {"COMPLETE": "#c8e6c9", "FAILED": "#ffcdd2", "IN_PROGRESS": "#fff9c4"}
_WAITING = "#eceff1"
_WIDTH, _HEIGHT, _GAP, _LAYER = 220, 48, 24, 110


def edges(resources: Sequence[Resource]) -> list[tuple[str, str]]:
    """Return the dependencies as pairs (required resource, dependent resource)."""
    names = {resource["resource_name"] for resource in resources}
    return [
        (resource["resource_name"], other)
        for resource in resources
        for other in resource.get("required_by") or ()
        if other in names
    ]


def dot(resources: Sequence[Resource]) -> str:
    """Return the graph as DOT."""
    lines = ["digraph stack {", "  rankdir=TB;", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    for resource in resources:
        label = f"{resource['resource_name']}\\n{resource['resource_type']}\\n{resource['resource_status']}"
        lines.append(f'  {_quoted(resource["resource_name"])} [label={_quoted(label)}, fillcolor="{_fill(resource)}"];')
    lines += [f"  {_quoted(need)} -> {_quoted(user)};" for need, user in edges(resources)]
    return "\n".join([*lines, "}", ""])


def svg(resources: Sequence[Resource]) -> str:
    """Return the graph as SVG, in layers: each resource is below the resources that it requires."""
    layers = _layers(resources)
    widest = max((len(layer) for layer in layers), default=1)
    width, height = widest * (_WIDTH + _GAP) + _GAP, len(layers) * _LAYER + _GAP
    places: dict[str, tuple[float, float]] = {}
    for row, layer in enumerate(layers):
        x = (width - len(layer) * (_WIDTH + _GAP) + _GAP) / 2
        for column, name in enumerate(layer):
            places[name] = (x + column * (_WIDTH + _GAP), _GAP + row * _LAYER)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="12">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#607d8b"/></marker></defs>',
        *(_line(places[need], places[user]) for need, user in edges(resources)),
        *(_box(resource, places[resource["resource_name"]]) for resource in resources),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _layers(resources: Sequence[Resource]) -> list[list[str]]:
    needs: dict[str, set[str]] = {resource["resource_name"]: set() for resource in resources}
    for need, user in edges(resources):
        needs[user].add(need)
    layers: list[list[str]] = []
    while needs:
        ready = sorted(name for name, required in needs.items() if not required & needs.keys()) or sorted(needs)
        layers.append(ready)
        for name in ready:
            del needs[name]
    return layers


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH / 2, start[1] + _HEIGHT, end[0] + _WIDTH / 2, end[1]
    middle = (y1 + y2) / 2
    return (
        f'<path d="M{x1:g} {y1:g} C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}" '
        'fill="none" stroke="#607d8b" marker-end="url(#end)"/>'
    )


def _box(resource: Resource, place: tuple[float, float]) -> str:
    x, y = place
    reason = escape(resource.get("resource_status_reason") or "")
    return (
        f"<g><title>{escape(resource['resource_status'])} {reason}</title>"
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="8" '
        f'fill="{_fill(resource)}" stroke="#607d8b"/>'
        f'<text x="{x + _WIDTH / 2:g}" y="{y + 20:g}" text-anchor="middle" font-weight="bold">'
        f"{escape(_short(resource['resource_name']))}</text>"
        f'<text x="{x + _WIDTH / 2:g}" y="{y + 38:g}" text-anchor="middle" fill="#455a64">'
        f"{escape(_short(resource['resource_type']))}</text></g>"
    )


def _short(text: str, longest: int = 32) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _fill(resource: Mapping[str, object]) -> str:
    action, _, status = str(resource["resource_status"]).partition("_")
    return _WAITING if action == "INIT" else _FILL.get(status, _WAITING)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\n", "\n").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
