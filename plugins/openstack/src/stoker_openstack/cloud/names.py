"""
Resolves names of a cloud's objects to ids, as Heat does for properties and custom constraints.

An indirect reference names another object in place of the one that Neutron needs, as the types of EC2 do: a key of the
specification (see ``model``) is replaced by an id in the body.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from stoker.bounded_dict import BoundedDict
from stoker_openstack.cloud.client import CloudClient, suppressing
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import body_of

_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: Seconds that a resolved name is remembered.
_REMEMBERED = 60.0
#: Limit of the names that are remembered.
_MOST = 10_000
#: The kind of object (``nouns.NOUNS``) that a key of a body of Neutron or Cinder names.
_REFERENCES: Mapping[str, str] = {
    "network_id": "network",
    "floating_network_id": "network",
    "subnet_id": "subnet",
    "subnetpool_id": "subnetpool",
    "port_id": "port",
    "router_id": "router",
    "security_groups": "security_group",
    "security_group_id": "security_group",
    "remote_group_id": "security_group",
    "qos_policy_id": "qos_policy",
    "floatingip_id": "floating_ip",
    "internal_port_id": "port",
    "imageRef": "image",
    "snapshot_id": "snapshot",
    "source_volid": "volume",
}
#: Keys whose value holds further references.
_NESTED = ("external_gateway_info", "fixed_ips", "external_fixed_ips")


def not_found(title: str, name: str) -> CloudFailure:
    """Return Heat's error for a name or id without an object."""
    return CloudFailure(f"The {title} ({name}) could not be found.", "EntityNotFound")


class CloudLogin:
    """A client, which also resolves names. Found ids are remembered for a minute; missing names are not."""

    def __init__(self, client: CloudClient) -> None:
        self.client = client
        #: Kind and name of an object → its id, and the end of the entry on the monotonic clock.
        self._known: BoundedDict[tuple[str, str], tuple[str, float]] = BoundedDict(_MOST)

    def resolve(self, kind: str, name: str) -> str:
        """
        Return the id of the object of this kind (a key of NOUNS) with this name or id.

        Raises CloudFailure with Heat's text if there is no object or more than one.
        """
        id, until = self._known.get((kind, name), ("", 0.0))
        if until <= time.monotonic():
            id = self._look_up(NOUNS[kind], name)
            self._known.put((kind, name), (id, time.monotonic() + _REMEMBERED))
        return id

    def resolve_body(self, specification: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return the body of a request with ids in place of names and of indirect references.

        Raises CloudFailure for names without an object.
        """
        body = body_of(specification)
        if server := specification.get("stoker:server_id"):
            body["port_id"] = self._first("port", f"The server {server} has no port.", device_id=server)
        if specification.get("stoker:external_network") and not body.get("floating_network_id"):
            problem = "The cloud has no external network."
            body["floating_network_id"] = self._first("network", problem, **{"router:external": "true"})
        return {key: self._resolve_value(key, value) for key, value in body.items()}

    def _resolve_value(self, key: str, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._resolve_value(key, item) for item in value]
        if isinstance(value, Mapping) and key in _NESTED:
            return self.resolve_body(value)
        return self.resolve(_REFERENCES[key], value) if value and key in _REFERENCES else value

    def _first(self, kind: str, problem: str, **query: Any) -> str:
        matches = NOUNS[kind].list(self.client, query)
        if not matches:
            raise CloudFailure(problem, "EntityNotFound")
        return str(matches[0]["id"])

    def _look_up(self, noun: Noun, name: str) -> str:
        if noun.has_plain_ids or _UUID.fullmatch(name):
            with suppressing(400):  # the id has another form
                if (match := noun.find(self.client, name)) is not None:
                    return str(match[noun.id_key])
        listed = noun.list_named(self.client, name)
        matches = [item for item in listed if name in (item.get(noun.name_key), item.get("id"))]
        if not matches:
            raise not_found(noun.title, name)
        if len(matches) > 1:
            raise CloudFailure(
                f"Multiple physical resources were found with name ({name}).", "PhysicalResourceNameAmbiguity"
            )
        return str(matches[0]["id"])
