"""The kinds of objects that a cloud lists: where they are, how they are found, and what Heat calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.service_client import rejecting_malformed
from stoker_openstack.cloud.client import COMPUTE, IDENTITY, IMAGE, NETWORK, VOLUME, CloudClient, suppressing
from stoker_openstack.cloud.markers import Marker, marker_of
from stoker_openstack.model import GENERATION_KEY

#: Number of objects in one page of a list.
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Noun:
    """A kind of objects. ``key`` is that of a list in a response; ``title`` is Heat's name of the kind in errors."""

    title: str
    service: str
    path: str = ""
    key: str = ""
    #: The end of the path of the list with all members.
    detail: str = ""
    #: The service ignores a filter by name.
    lists_all: bool = False
    #: The service shows an administrator the objects that are not public only on request.
    has_private: bool = False
    #: Ids of this kind need not be UUIDs.
    has_plain_ids: bool = False
    #: The members that serve as the name, and as the id.
    name_key: str = "name"
    id_key: str = "id"

    @property
    def item_key(self) -> str:
        """The key of one object in a response; Glance has none."""
        return "" if self.service == IMAGE else self.key.removesuffix("s").replace("policie", "policy")

    def find(self, client: CloudClient, id: str) -> dict[str, Any] | None:
        """Return the object with this id; None if the service has none."""
        with suppressing(404):
            answer = client.get(self.service, f"{self.path}/{id}")
            with rejecting_malformed():
                item: dict[str, Any] = answer[self.item_key] if self.item_key else answer
                return item
        return None

    def list_named(self, client: CloudClient, name: str) -> list[dict[str, Any]]:
        """Return the objects with a name, and maybe others."""
        pattern = f"^{re.escape(name)}$" if self.key == "servers" else name  # Nova takes a regular expression
        return self.list(client, () if self.lists_all else {self.name_key: pattern})

    def list(self, client: CloudClient, query: Any = ()) -> list[dict[str, Any]]:
        """Return all objects that match a query (a mapping or pairs), with all members, page by page."""
        pairs = [*(query.items() if isinstance(query, Mapping) else query), ("limit", _PAGE)]
        if self.has_private:
            pairs.append(("is_public", "None"))
        items: list[dict[str, Any]] = []
        page = pairs
        while True:
            body = client.get(self.service, f"{self.path}{self.detail}", query=page)
            with rejecting_malformed():
                some = body[self.key]
            items += some
            if not some or (len(some) < _PAGE and not _has_next(body, self.key)):
                return items
            page = [*pairs, ("marker", items[-1]["id"])]

    def find_marked(self, client: CloudClient, marker: Marker, name: str) -> dict[str, Any] | None:
        """Return the object with a marker, or None. Services that cannot search for markers search for the name."""
        if self.service == NETWORK:
            items = self.list(client, {"description": marker.text}) + self.list(client, {"tags": marker.text})
        elif self.service == IMAGE:
            items = self.list(client, marker.metadata)
        else:
            items = self.list_named(client, name)
        return next((item for item in items if marker_of(item) == marker), None)

    def list_marked(self, client: CloudClient, site: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """
        Yield the objects with the marker of a site, each after the id of its resource; not images that save servers,
        which outlive them. Raises CloudRefused.
        """
        for item in self.list(client):
            marker = marker_of(item)
            if marker is not None and marker.site == site and GENERATION_KEY not in item:
                yield marker.resource_id, item

    def create(self, client: CloudClient, members: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """
        Create an object, and return it. ``beside`` are keys of the body beside the object, and ``options`` those of
        ``CloudClient.request``.
        """
        return self._write(client, "POST", self.path, members, **options)

    def change(self, client: CloudClient, id: str, members: Mapping[str, Any]) -> dict[str, Any]:
        """Change members of an object, and return the object."""
        return self._write(client, "PUT", f"{self.path}/{id}", members)

    def _write(
        self,
        client: CloudClient,
        verb: str,
        path: str,
        members: Mapping[str, Any],
        beside: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        key = self.item_key
        body = {key: dict(members), **(beside or {})} if key else dict(members)
        answer = client.request(self.service, verb, path, body, **options).json()
        item: dict[str, Any] = answer[key] if key else answer
        return item

    def delete(self, client: CloudClient, id: str) -> None:
        """Delete an object."""
        client.request(self.service, "DELETE", f"{self.path}/{id}")

    def discard(self, client: CloudClient, id: str) -> None:
        """Delete an object, which may be gone."""
        with suppressing(404):
            self.delete(client, id)

    def delete_whole(self, client: CloudClient, id: str) -> None:
        """Delete an object without its driver: before a router its interfaces, before a floating IP its forwardings."""
        if self.key == "routers":
            query = {"device_id": id, "device_owner": "network:router_interface"}
            for port in NOUNS["port"].list(client, query):
                path = f"{self.path}/{id}/remove_router_interface"
                client.request(NETWORK, "PUT", path, {"port_id": port["id"]})
        if self.key == "floatingips":
            forwardings = forwardings_of(id)
            for forwarding in forwardings.list(client):
                forwardings.delete(client, forwarding["id"])
        self.delete(client, id)


def _has_next(body: Mapping[str, Any], key: str) -> bool:
    links = body.get(f"{key}_links") or ()
    return bool(body.get("next")) or any(link.get("rel") == "next" for link in links)


def forwardings_of(floating_ip: str) -> Noun:
    """Return the noun of the port forwardings of a floating IP."""
    path = f"/floatingips/{floating_ip}/port_forwardings"
    return Noun("FloatingIPPortForward", NETWORK, path, "port_forwardings")


NOUNS: Mapping[str, Noun] = {
    "image": Noun("Image", IMAGE, "/images", "images"),
    "flavor": Noun(
        "Flavor", COMPUTE, "/flavors", "flavors", "/detail", lists_all=True, has_private=True, has_plain_ids=True
    ),
    "server": Noun("Server", COMPUTE, "/servers", "servers", "/detail"),
    "keypair": Noun("Key", COMPUTE, "/os-keypairs", "keypairs", lists_all=True, has_plain_ids=True, id_key="name"),
    "network": Noun("Network", NETWORK, "/networks", "networks"),
    "subnet": Noun("Subnet", NETWORK, "/subnets", "subnets"),
    "subnetpool": Noun("Subnetpool", NETWORK, "/subnetpools", "subnetpools"),
    "port": Noun("Port", NETWORK, "/ports", "ports"),
    "router": Noun("Router", NETWORK, "/routers", "routers"),
    "security_group": Noun("SecurityGroup", NETWORK, "/security-groups", "security_groups"),
    "security_group_rule": Noun("SecurityGroupRule", NETWORK, "/security-group-rules", "security_group_rules"),
    "floating_ip": Noun("Floatingip", NETWORK, "/floatingips", "floatingips", name_key="floating_ip_address"),
    "qos_policy": Noun("QosPolicy", NETWORK, "/qos/policies", "policies"),
    "volume": Noun("Volume", VOLUME, "/volumes", "volumes", "/detail"),
    "snapshot": Noun("VolumeSnapshot", VOLUME, "/snapshots", "snapshots"),
    "backup": Noun("VolumeBackup", VOLUME, "/backups", "backups", "/detail"),
    "project": Noun("KeystoneProject", IDENTITY, "/projects", "projects"),
    "volume_type": Noun("VolumeType", VOLUME, "/types", "volume_types", lists_all=True, has_private=True),
}
#: The kinds whose objects carry markers and are found without a driver, in the order in which they are deleted.
SWEPT = (
    "server",
    "floating_ip",
    "port",
    "router",
    "subnet",
    "network",
    "security_group",
    "volume",
    "volume_type",
    "image",
)
