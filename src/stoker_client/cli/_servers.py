"""Servers as users name them."""

from uuid import UUID

from stoker_client.client import Client
from stoker_client.errors import NotFound


def server_id(client: Client, ref: str) -> str:
    """The id of the server ``ref``. An id that the service does not list is taken as it is: Heat has no list."""
    try:
        return client.servers.show(ref)["id"]
    except NotFound:
        if not _is_uuid(ref):
            raise
        return ref


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
