"""References to servers."""

from collections.abc import Sequence

from stoker_client.client import Client
from stoker_client.references import is_id, is_pattern, is_prefix


def server_id(client: Client, ref: str) -> str:
    """Return the id of the server ``ref``. A complete id needs no request: Heat's API has no list of servers."""
    return ref if is_id(ref) else client.servers.show(ref)["id"]


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
