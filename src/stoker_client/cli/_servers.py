"""References to servers."""

from collections.abc import Mapping, Sequence

from stoker_client.cli._output import Output
from stoker_client.client import Client
from stoker_client.errors import Refused
from stoker_client.references import is_id, is_pattern, is_prefix


def server_id(client: Client, ref: str) -> str:
    """Return the id of the server ``ref``. A complete id needs no request: Heat's API has no list of servers."""
    return ref if is_id(ref) else client.servers.show(ref)["id"]


def server_names(client: Client) -> Mapping[str, str]:
    """Return the names of servers by id, or an empty mapping if the service has no list of servers, as Heat."""
    try:
        return {server["id"]: server["name"] for server in client.servers.all()}
    except Refused:
        return {}


def cell_names(client: Client, output: Output) -> Mapping[str, str]:
    """Return the names of servers by id for the column ``server``; empty if the output does not have the column."""
    has_column = not output.is_data and (not output.columns or "server" in output.columns)
    return server_names(client) if has_column else {}


def service_name(client: Client, ref: str) -> str:
    """Return a reference that the service resolves: a name or an id instead of a prefix or STACK/RESOURCE."""
    return ref if _is_resolvable(ref) else client.servers.show(ref)["id"]


def service_names(client: Client, refs: Sequence[str]) -> Sequence[str]:
    """Return references that the service resolves, as ``service_name`` does; a pattern stands for several servers."""
    if all(_is_resolvable(ref) and not is_pattern(ref) for ref in refs):
        return refs
    return [server["id"] for server in client.servers.find(refs)]


def _is_resolvable(ref: str) -> bool:
    return not is_prefix(ref) and "/" not in ref
