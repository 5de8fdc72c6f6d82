"""Where a cloud lists objects that carry markers, and how they are deleted without a driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker_openstack.cloud.client import COMPUTE, IMAGE, NETWORK, VOLUME, CloudClient
from stoker_openstack.cloud.drivers.server_request import MICROVERSION
from stoker_openstack.cloud.markers import marker_of
from stoker_openstack.model import CloudKind


@dataclass(frozen=True, slots=True)
class Place:
    """The list of one kind of objects. ``detail`` is the end of the path of the list."""

    kind: CloudKind
    noun: str
    service: str
    path: str
    key: str
    detail: str = ""

    def list_marked(self, client: CloudClient, site: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the objects with the marker of a site, each after the id of its resource. Raises CloudRefused."""
        version = MICROVERSION if self.service == COMPUTE else None
        for item in client.list(self.service, f"{self.path}{self.detail}", self.key, microversion=version):
            marker = marker_of(item)
            if marker is not None and marker.site == site:
                yield marker.resource_id, item

    def delete(self, client: CloudClient, item: Mapping[str, Any]) -> None:
        """Delete an object, and before it the interfaces of a router or the port forwardings of a floating IP."""
        if self.kind is CloudKind.ROUTER:
            query = {"device_id": item["id"], "device_owner": "network:router_interface"}
            for port in client.list(NETWORK, "/ports", "ports", query=query):
                path = f"{self.path}/{item['id']}/remove_router_interface"
                client.request(NETWORK, "PUT", path, {"port_id": port["id"]})
        if self.kind is CloudKind.FLOATING_IP:
            path = f"{self.path}/{item['id']}/port_forwardings"
            for forwarding in (client.find(NETWORK, path, "") or {}).get("port_forwardings", ()):
                client.request(NETWORK, "DELETE", f"{path}/{forwarding['id']}")
        client.request(self.service, "DELETE", f"{self.path}/{item['id']}")


#: In an order in which no object is deleted before those that use it.
PLACES = (
    Place(CloudKind.SERVER, "server", COMPUTE, "/servers", "servers", "/detail"),
    Place(CloudKind.FLOATING_IP, "floating IP", NETWORK, "/floatingips", "floatingips"),
    Place(CloudKind.PORT, "port", NETWORK, "/ports", "ports"),
    Place(CloudKind.ROUTER, "router", NETWORK, "/routers", "routers"),
    Place(CloudKind.SUBNET, "subnet", NETWORK, "/subnets", "subnets"),
    Place(CloudKind.NETWORK, "network", NETWORK, "/networks", "networks"),
    Place(CloudKind.SECURITY_GROUP, "security group", NETWORK, "/security-groups", "security_groups"),
    Place(CloudKind.VOLUME, "volume", VOLUME, "/volumes", "volumes", "/detail"),
    Place(CloudKind.VOLUME_TYPE, "volume type", VOLUME, "/types", "volume_types"),
    Place(CloudKind.IMAGE, "image", IMAGE, "/images", "images"),
)


def place_of(kind: CloudKind) -> Place | None:
    """Return the place of a kind; None if its objects carry no marker."""
    return next((place for place in PLACES if place.kind is kind), None)
