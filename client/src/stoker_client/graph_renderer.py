"""Draws a stack's dependency graph in Graphviz's language DOT: servers as frames, configs within their deployments."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from stoker_client.errors import ClientError
from stoker_client.shapes import GraphNode

#: Formats that the program ``dot`` draws.
FORMATS = ("svg", "png")
#: Seconds that a drawing may take.
_PATIENCE = 120
_CONFIGS = ("OS::Heat::SoftwareConfig", "OS::Heat::StructuredConfig", "OS::Heat::SoftwareComponent")


class _State(NamedTuple):
    symbol: str
    word: str
    fill: str


_WAITING = _State("○", "waiting", "#eceff1")
#: By the end of a resource's status.
_STATES = {
    "COMPLETE": _State("✓", "complete", "#c8e6c9"),
    "IN_PROGRESS": _State("▶", "in progress", "#fff3c4"),
    "FAILED": _State("✗", "failed", "#ffcdd2"),
}


def draw(text: str, form: str) -> bytes:
    """Return the drawing of a graph in DOT. ``form``: one of FORMATS. Raises ClientError without Graphviz."""
    try:
        done = subprocess.run(
            ["dot", f"-T{form}"], input=text.encode(), capture_output=True, timeout=_PATIENCE, check=True
        )
    except OSError:
        raise ClientError(
            "Graphviz is not installed, whose program `dot` draws the graph: `apt install graphviz`, or print the graph"
            " as text with --format dot"
        ) from None
    except subprocess.TimeoutExpired:
        raise ClientError(f"Graphviz did not draw the graph within {_PATIENCE} s: try --format dot") from None
    except subprocess.CalledProcessError as problem:
        raise ClientError(
            f"Graphviz cannot draw the graph: {problem.stderr.decode(errors='replace').strip()}"
        ) from None
    return done.stdout


def dot(graph: Mapping[str, Any]) -> str:
    """Return the graph in DOT."""
    nodes: dict[str, GraphNode] = {node["id"]: node for node in graph["nodes"]}
    edges = [(edge["source"], edge["target"]) for edge in graph["edges"]]
    folded = _fold(nodes, edges)
    hidden = set(folded.values())
    on_server = Counter(node["server_id"] for node in graph["nodes"])
    frames: dict[str, list[str]] = {}
    for id_, node in nodes.items():
        if id_ not in hidden:
            # a server on which nothing runs needs no frame
            server = node["server_id"] or "" if on_server[node["server_id"]] > 1 or not _is_server(node) else ""
            config = nodes[folded[id_]]["resource_name"] if id_ in folded else ""
            frames.setdefault(server, []).append(_node(node, config))
    names = {node["server_id"]: node["server_name"] or node["server_id"] for node in graph["nodes"]}
    lines = ["digraph stack {", *_STYLE, f"  label=<{_legend()}>;", *(f"  {node}" for node in frames.pop("", []))]
    for number, (server, boxes) in enumerate(frames.items()):
        lines.append(f"  subgraph cluster_{number} {{ label={_quoted(names[server] or server)};")
        lines += [f"    {node}" for node in boxes]
        lines.append("  }")
    lines += [f"  {_quoted(need)} -> {_quoted(user)};" for need, user in _edges(nodes, edges, hidden)]
    return "\n".join([*lines, "}", ""])


_STYLE = (
    '  graph [nodesep=0.35, ranksep=0.5, fontname="sans-serif", fontsize=11];',
    '  graph [labeljust=l, style=rounded, color="#90a4ae"];  // frames',
    '  node [shape=box, style="rounded,filled", color="#607d8b", fontname="sans-serif", fontsize=11];',
    '  edge [color="#607d8b", arrowsize=0.7];',
)


def _fold(nodes: Mapping[str, GraphNode], edges: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the config within each deployment: one that requires nothing and is required by deployments only."""
    users: dict[str, list[str]] = {}
    for need, user in edges:
        users.setdefault(need, []).append(user)
    requiring = {user for _, user in edges}
    folded: dict[str, str] = {}
    for id_, node in nodes.items():
        own = users.get(id_, ())
        is_config = node["resource_type"] in _CONFIGS and id_ not in requiring
        if is_config and own and all("Deployment" in nodes[user]["resource_type"] for user in own):
            folded |= dict.fromkeys((user for user in own if user not in folded), id_)
    # A config that shares a deployment with another stays, because a box names one.
    kept = {id_ for id_ in set(folded.values()) if any(folded.get(user) != id_ for user in users[id_])}
    return {user: id_ for user, id_ in folded.items() if id_ not in kept}


def _edges(
    nodes: Mapping[str, GraphNode], edges: Sequence[tuple[str, str]], hidden: Collection[str]
) -> Iterator[tuple[str, str]]:
    """
    Yield the dependencies as pairs: required resource, dependent resource.

    Within a server's frame, only the first deployments have an arrow from the server itself.
    """
    pairs = [(need, user) for need, user in edges if need not in hidden and user not in hidden]
    in_frame = {
        (need, user) for need, user in pairs
        if nodes[need]["server_id"] is not None and nodes[need]["server_id"] == nodes[user]["server_id"]
    }  # fmt: skip
    later = {user for need, user in in_frame if not _is_server(nodes[need])}
    for need, user in pairs:
        if not ((need, user) in in_frame and _is_server(nodes[need]) and user in later):
            yield need, user


def _is_server(node: GraphNode) -> bool:
    return node["server_id"] is not None and node["server_id"] == node["physical_resource_id"]


def _node(node: GraphNode, config: str) -> str:
    """Return a box. ``config`` is the name of the config within it."""
    state = _state(node)
    within = f": {escape(config)}" if config else ""
    kind = node["resource_type"].removeprefix("OS::Heat::")
    at = (node["end_time"] or node["start_time"] or "").partition("T")[2].rstrip("Z")
    at = f" {at}" if at and state is not _WAITING else ""
    label = (
        f'<b>{escape(node["resource_name"])}</b><br/><font color="#455a64" point-size="9">{escape(kind)}{within}</font>'
        f'<br/><font point-size="9">{state.symbol} {_word(node)}{at}</font>'
    )
    tooltip = node["resource_status_reason"] or node["resource_status"]
    more = ", peripheries=2" if node["nested_stack_id"] else ""
    return f'{_quoted(node["id"])} [label=<{label}>, fillcolor="{state.fill}", tooltip={_quoted(tooltip)}{more}];'


def _state(node: GraphNode) -> _State:
    action, _, status = node["resource_status"].partition("_")
    return _WAITING if action == "INIT" else _STATES.get(status, _WAITING)


def _word(node: GraphNode) -> str:
    """Return the state in words: that of the last action, unless it is the creation."""
    action = node["resource_status"].partition("_")[0]
    return _state(node).word if action in ("CREATE", "INIT") else f"{action.lower()} {_state(node).word}"


def _legend() -> str:
    cells = "".join(
        f'<td bgcolor="{state.fill}">{state.symbol} {state.word}</td>' for state in (*_STATES.values(), _WAITING)
    )
    return (
        f'<table border="0" cellborder="0" cellspacing="4"><tr>{cells}<td>frame: a server</td>'
        "<td>arrow: must come first</td></tr></table>"
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
