"""
Removal of objects at the cloud that carry this site's marker and have no row: the cloud's part of ``stoker db sweep``.

Each list is read before the rows, so that a new object is not mistaken for an orphan: its row is older than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.backends.cloud.client import COMPUTE, IMAGE, NETWORK, VOLUME, CloudClient
from stoker.backends.cloud.drivers.server_request import MICROVERSION
from stoker.backends.cloud.errors import CloudFailure, RetryLater
from stoker.backends.cloud.markers import marker_of
from stoker.backends.garbage_collector import CollectedObject
from stoker.circuit_breaker import ServiceRejected, ServiceUnavailable
from stoker.store import cloud_objects
from stoker.store.open import Store

_ERRORS = (CloudFailure, RetryLater, ServiceRejected, ServiceUnavailable)


@dataclass(frozen=True, slots=True)
class _Place:
    noun: str
    service: str
    path: str
    key: str
    detail: str = ""


#: In an order in which no object is deleted before those that use it.
_PLACES = (
    _Place("server", COMPUTE, "/servers", "servers", "/detail"),
    _Place("floating IP", NETWORK, "/floatingips", "floatingips"),
    _Place("port", NETWORK, "/ports", "ports"),
    _Place("router", NETWORK, "/routers", "routers"),
    _Place("subnet", NETWORK, "/subnets", "subnets"),
    _Place("network", NETWORK, "/networks", "networks"),
    _Place("security group", NETWORK, "/security-groups", "security_groups"),
    _Place("volume", VOLUME, "/volumes", "volumes", "/detail"),
    _Place("image", IMAGE, "/images", "images"),
)


def collect(store: Store, client: CloudClient, site: str, *, dry_run: bool) -> Iterator[CollectedObject]:
    """Delete the objects, and yield each one. ``site`` is the public id of this site; ``dry_run``: delete nothing."""
    for place in _PLACES:
        try:
            orphans = _orphans(store, client, place, site)
        except _ERRORS as error:
            yield CollectedObject(f"{place.noun}s of the cloud {client.name}", str(error))
            continue
        for item in orphans:
            description = f"{place.noun} {item.get('name') or ''} ({item['id']}) of the cloud {client.name}"
            try:
                if not dry_run:
                    _delete(client, place, item)
            except _ERRORS as error:
                yield CollectedObject(description, str(error))
            else:
                yield CollectedObject(description)


def _orphans(store: Store, client: CloudClient, place: _Place, site: str) -> list[dict[str, Any]]:
    version = MICROVERSION if place.service == COMPUTE else None
    listed = client.list(place.service, f"{place.path}{place.detail}", place.key, microversion=version)
    markers = {item["id"]: marker for item in listed if (marker := marker_of(item)) and marker.site == site}
    with store.read() as tx:
        present = cloud_objects.known_ids(tx, {marker.resource_id for marker in markers.values()})
    return [item for item in listed if item["id"] in markers and markers[item["id"]].resource_id not in present]


def _delete(client: CloudClient, place: _Place, item: Mapping[str, Any]) -> None:
    if place.key == "routers":
        query = {"device_id": item["id"], "device_owner": "network:router_interface"}
        for port in client.list(NETWORK, "/ports", "ports", query=query):
            path = f"{place.path}/{item['id']}/remove_router_interface"
            client.request(NETWORK, "PUT", path, {"port_id": port["id"]})
    client.request(place.service, "DELETE", f"{place.path}/{item['id']}")
