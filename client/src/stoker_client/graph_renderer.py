"""Draws a stack's dependency graph in Graphviz's language DOT: servers as frames, configs within their deployments."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from stoker_client.deployments import DEPLOYMENT_TYPES, server_name_of
from stoker_client.errors import ClientError
from stoker_client.shapes import Deployment, Resource

#: Formats that the program ``dot`` draws.
FORMATS = ("svg", "png")
#: Seconds that a drawing may take.
_PATIENCE = 120
_CONFIGS = ("OS::Heat::SoftwareConfig", "OS::Heat::StructuredConfig", "OS::Heat::SoftwareComponent")
_SERVERS = ("OS::Heat::DeployedServer", "OS::Nova::Server")
_NESTED = ("OS::Heat::ResourceGroup", "OS::Heat::SoftwareDeploymentGroup", "OS::Heat::StructuredDeploymentGroup")


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


def dot(resources: Sequence[Resource], deployments: Iterable[Deployment] = ()) -> str:
    """Return the graph in DOT. ``deployments``, with their names, tell the server of each deployment."""
    folded = _fold(resources)
    hidden = set(folded.values())
    frames: dict[str, list[str]] = {}
    servers, names = _servers(resources, {deployment["id"]: deployment for deployment in deployments})
    for resource in resources:
        name = resource["resource_name"]
        if name not in hidden:
            frames.setdefault(servers.get(name, ""), []).append(_node(resource, folded))
    lines = ["digraph stack {", *_STYLE, f"  label=<{_legend()}>;", *(f"  {node}" for node in frames.pop("", []))]
    for number, (server, nodes) in enumerate(frames.items()):
        lines.append(f"  subgraph cluster_{number} {{ label={_quoted(names.get(server, server))};")
        lines += [f"    {node}" for node in nodes]
        lines.append("  }")
    lines += [f"  {_quoted(need)} -> {_quoted(user)};" for need, user in _edges(resources, folded, servers)]
    return "\n".join([*lines, "}", ""])


_STYLE = (
    '  graph [nodesep=0.35, ranksep=0.5, fontname="sans-serif", fontsize=11];',
    '  graph [labeljust=l, style=rounded, color="#90a4ae"];  // frames',
    '  node [shape=box, style="rounded,filled", color="#607d8b", fontname="sans-serif", fontsize=11];',
    '  edge [color="#607d8b", arrowsize=0.7];',
)


def _fold(resources: Sequence[Resource]) -> dict[str, str]:
    """Return the config within each deployment: one that requires nothing and is required by deployments only."""
    by_name = {resource["resource_name"]: resource for resource in resources}
    requiring = {user for resource in resources for user in resource.get("required_by") or ()}
    folded: dict[str, str] = {}
    for name, resource in by_name.items():
        users = [user for user in resource.get("required_by") or () if user in by_name]
        is_config = resource["resource_type"] in _CONFIGS and name not in requiring
        if is_config and users and all("Deployment" in by_name[user]["resource_type"] for user in users):
            folded |= dict.fromkeys((user for user in users if user not in folded), name)
    # A config that shares a deployment with another stays, because a box names one.
    kept = {
        name
        for name in set(folded.values())
        if any(folded.get(user) != name for user in by_name[name].get("required_by") or () if user in by_name)
    }
    return {user: name for user, name in folded.items() if name not in kept}


def _edges(
    resources: Sequence[Resource], folded: Mapping[str, str], servers: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """
    Yield the dependencies as pairs: required resource, dependent resource.

    Within a server's frame, only the first deployments have an arrow from the server itself.
    """
    names = {resource["resource_name"] for resource in resources} - set(folded.values())
    pairs = [
        (resource["resource_name"], user)
        for resource in resources
        for user in resource.get("required_by") or ()
        if {resource["resource_name"], user} <= names
    ]
    own = {resource["resource_name"] for resource in resources if resource["resource_type"] in _SERVERS}
    later = {user for need, user in pairs if need not in own and need in servers and servers[need] == servers.get(user)}
    for need, user in pairs:
        if not (need in own and user in later and servers.get(need) == servers.get(user)):
            yield need, user


def _servers(
    resources: Sequence[Resource], deployments: Mapping[str, Deployment]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the server of each resource that is on one, and the names of servers, by their ids or resources."""
    by_name = {resource["resource_name"]: resource for resource in resources}
    own = {
        name: resource.get("physical_resource_id") or name
        for name, resource in by_name.items()
        if resource["resource_type"] in _SERVERS
    }
    names = {id_: name for name, id_ in own.items()}
    servers: dict[str, str] = {}
    for name, resource in by_name.items():
        deployment = deployments.get(resource.get("physical_resource_id") or "")
        if deployment is not None:
            servers[name] = deployment["server_id"]
            names[deployment["server_id"]] = server_name_of(deployment)
    for name, id_ in own.items():  # a deployment that does not exist yet is on the server that it requires
        for user in by_name[name].get("required_by") or ():
            if user in by_name and by_name[user]["resource_type"] in DEPLOYMENT_TYPES:
                servers.setdefault(user, id_)
        if id_ in servers.values():
            servers[name] = id_
    return servers, names


def _node(resource: Resource, folded: Mapping[str, str]) -> str:
    name, state = resource["resource_name"], _state(resource)
    config = f": {escape(folded[name])}" if name in folded else ""
    kind = resource["resource_type"].removeprefix("OS::Heat::")
    at = (resource.get("updated_time") or resource.get("creation_time") or "").partition("T")[2].rstrip("Z")
    at = f" {at}" if at and state is not _WAITING else ""
    label = (
        f'<b>{escape(name)}</b><br/><font color="#455a64" point-size="9">{escape(kind)}{config}</font><br/>'
        f'<font point-size="9">{state.symbol} {_word(resource)}{at}</font>'
    )
    nested = kind.endswith((".yaml", ".template")) or resource["resource_type"] in _NESTED
    tooltip = resource.get("resource_status_reason") or resource["resource_status"]
    more = ", peripheries=2" if nested else ""
    return f'{_quoted(name)} [label=<{label}>, fillcolor="{state.fill}", tooltip={_quoted(tooltip)}{more}];'


def _state(resource: Resource) -> _State:
    action, _, status = resource["resource_status"].partition("_")
    return _WAITING if action == "INIT" else _STATES.get(status, _WAITING)


def _word(resource: Resource) -> str:
    """Return the state in words: that of the last action, unless it is the creation."""
    action = resource["resource_status"].partition("_")[0]
    return _state(resource).word if action in ("CREATE", "INIT") else f"{action.lower()} {_state(resource).word}"


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
