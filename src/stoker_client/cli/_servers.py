"""References to servers."""

from collections.abc import Mapping

from stoker_client.client import Client
from stoker_client.errors import Refused
from stoker_client.references import is_id, is_prefix


def server_id(client: Client, ref: str) -> str:
    """Return the id of the server ``ref``. A complete id needs no request: Heat's API has no list of servers."""
    return ref if is_id(ref) else client.servers.show(ref)["id"]


def server_names(client: Client) -> Mapping[str, str]:
    """Return the names of servers by id, or an empty mapping if the service has no list of servers, as Heat."""
    try:
        return {server["id"]: server["name"] for server in client.servers.all()}
    except Refused:
        return {}


def service_name(client: Client, ref: str) -> str:
    """Return a reference that the service resolves: a name or an id instead of a prefix or STACK/RESOURCE."""
    return client.servers.show(ref)["id"] if is_prefix(ref) or "/" in ref else ref
