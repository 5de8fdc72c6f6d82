"""Resolves names of a cloud's objects to ids, as Heat does for properties and custom constraints."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker_openstack.cloud.client import COMPUTE, IDENTITY, IMAGE, NETWORK, VOLUME, CloudClient
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused

_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: Seconds that a resolved name is remembered.
_REMEMBERED = 60.0


@dataclass(frozen=True, slots=True)
class Noun:
    """A kind of objects that are named: where they are listed, and what Heat calls them."""

    title: str
    service: str
    path: str
    key: str
    #: The service ignores a filter by name.
    lists_all: bool = False
    #: Ids of this kind need not be UUIDs.
    has_plain_ids: bool = False
    #: The member that serves as the name.
    name_key: str = "name"

    @property
    def item_key(self) -> str:
        """The key of one object in a response; Glance has none."""
        return "" if self.service == IMAGE else self.key.removesuffix("s").replace("policie", "policy")


NOUNS: Mapping[str, Noun] = {
    "image": Noun("Image", IMAGE, "/images", "images"),
    "flavor": Noun("Flavor", COMPUTE, "/flavors", "flavors", lists_all=True, has_plain_ids=True),
    "server": Noun("Server", COMPUTE, "/servers", "servers"),
    "server_group": Noun("ServerGroup", COMPUTE, "/os-server-groups", "server_groups", lists_all=True),
    "network": Noun("Network", NETWORK, "/networks", "networks"),
    "subnet": Noun("Subnet", NETWORK, "/subnets", "subnets"),
    "subnetpool": Noun("Subnetpool", NETWORK, "/subnetpools", "subnetpools"),
    "port": Noun("Port", NETWORK, "/ports", "ports"),
    "router": Noun("Router", NETWORK, "/routers", "routers"),
    "security_group": Noun("SecurityGroup", NETWORK, "/security-groups", "security_groups"),
    "floating_ip": Noun("Floatingip", NETWORK, "/floatingips", "floatingips", name_key="floating_ip_address"),
    "qos_policy": Noun("QosPolicy", NETWORK, "/qos/policies", "policies"),
    "volume": Noun("Volume", VOLUME, "/volumes", "volumes"),
    "snapshot": Noun("VolumeSnapshot", VOLUME, "/snapshots", "snapshots"),
    "backup": Noun("VolumeBackup", VOLUME, "/backups", "backups"),
    "project": Noun("KeystoneProject", IDENTITY, "/projects", "projects"),
    "volume_type": Noun("VolumeType", VOLUME, "/types", "volume_types", lists_all=True),
}


def not_found(title: str, name: str) -> CloudFailure:
    """Return Heat's error for a name or id without an object."""
    return CloudFailure(f"The {title} ({name}) could not be found.", "EntityNotFound")


class NameResolver:
    """Resolves names with one client. Found ids are remembered for a minute; missing names are not."""

    def __init__(self, client: CloudClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[float, str]] = {}

    def resolve(self, kind: str, name: str) -> str:
        """
        Return the id of the object of this kind (a key of NOUNS) with this name or id.

        Raises CloudFailure with Heat's text if there is no object or more than one.
        """
        key, now = (kind, name), self._clock()
        with self._lock:
            current = self._known.get(key)
        if current is not None and current[0] > now:
            return current[1]
        id = self._look_up(NOUNS[kind], name)
        with self._lock:
            self._known[key] = (now + _REMEMBERED, id)
        return id

    def forget(self, kind: str, name: str) -> None:
        """Look the name up again at the next call."""
        with self._lock:
            self._known.pop((kind, name), None)

    def require_keypair(self, name: str) -> str:
        """Return the name of a key pair. Raises CloudFailure if there is no such key pair."""
        if self._client.find(COMPUTE, f"/os-keypairs/{name}", "keypair") is None:
            raise not_found("Key", name)
        return name

    def _look_up(self, noun: Noun, name: str) -> str:
        if noun.has_plain_ids or _UUID.fullmatch(name):
            match = self._get(noun, name)
            if match is not None:
                return str(match["id"])
        query: list[tuple[str, Any]] = [] if noun.lists_all else [(noun.name_key, name)]
        if noun.key == "servers":
            query = [("name", f"^{re.escape(name)}$")]
        path = "/flavors/detail" if noun.key == "flavors" else noun.path
        listed = self._client.list(noun.service, path, noun.key, query=query)
        matches = [item for item in listed if name in (item.get(noun.name_key), item.get("id"))]
        if not matches:
            raise not_found(noun.title, name)
        if len(matches) > 1:
            raise CloudFailure(
                f"Multiple physical resources were found with name ({name}).", "PhysicalResourceNameAmbiguity"
            )
        return str(matches[0]["id"])

    def _get(self, noun: Noun, id: str) -> dict[str, Any] | None:
        try:
            return self._client.find(noun.service, f"{noun.path}/{id}", noun.item_key)
        except CloudRefused as error:
            if error.status == 400:  # the id has another form
                return None
            raise
