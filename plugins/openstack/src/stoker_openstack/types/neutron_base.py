"""Shared parts of the Neutron types: properties that several have, and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties, ResourceFailure, physical_name
from stoker.resources.properties import Property
from stoker_openstack.types.cloud_properties import body, flag, text, texts

#: Prefix of the keys of a specification that are no part of the service's request.
OWN = "stoker:"
VNIC_TYPES = ("normal", "direct", "macvtap", "direct-physical", "baremetal", "virtio-forwarder", "smart-nic")


NAME = text("Name; by default stack, resource and a short id.", update_allowed=True)
ADMIN_STATE_UP = flag("Whether the object is in use.", default=True, update_allowed=True)
TAGS = texts("Tags of the object.", update_allowed=True)
TENANT_ID = text("Project that owns the object, for administrators only.")
QOS_POLICY = text("Name or id of the QoS policy.", update_allowed=True)
PORT_SECURITY = flag("Whether security groups and address checks apply.", update_allowed=True)
VALUE_SPECS = Property(
    kind="map", default={}, update_allowed=True, description="Other members of the request, for extensions of Neutron."
)
ADDRESS_PAIRS = Property(
    kind="list",
    update_allowed=True,
    each=Property(
        kind="map",
        schema={
            "ip_address": text("Address or CIDR.", required=True),
            "mac_address": text("MAC address; by default the port's."),
        },
    ),
    description="Further addresses that the port may send from.",
)


def named(context: Context, resource: Resource, properties: Properties, **keys: str) -> dict[str, Any]:
    """Return the request's members as ``body`` does, with a name, tags, and the entries of ``value_specs``."""
    members = {"name": properties.get("name") or physical_name(context, resource), **body(properties, **keys)}
    if properties.get("tags") is not None:
        members["tags"] = properties["tags"]
    return {**members, **value_specs(properties)}


def value_specs(properties: Properties) -> Mapping[str, Any]:
    """Return the entries of ``value_specs``. Raises ResourceFailure for Stoker's own keys."""
    specs: Mapping[str, Any] = properties.get("value_specs") or {}
    own = sorted(str(name) for name in specs if str(name).startswith(OWN))
    if own:
        raise ResourceFailure(f"value_specs: the key {own[0]} is reserved")
    return specs
