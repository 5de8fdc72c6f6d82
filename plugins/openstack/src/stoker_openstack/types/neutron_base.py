"""Shared parts of the Neutron types: properties that several have, and the entries of ``value_specs``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties, ResourceFailure
from stoker_openstack.model import OWN_PREFIX
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import flag, mapping, object_name, text, texts

NAME = object_name(update_allowed=True)
ADMIN_STATE_UP = flag("Whether the object is in use.", default=True, update_allowed=True)
TAGS = texts("Tags of the object.", update_allowed=True)
TENANT_ID = text("Project that owns the object, for administrators only.")
QOS_POLICY = text("Name or id of the QoS policy.", key="qos_policy_id", update_allowed=True)
PORT_SECURITY = flag("Whether security groups and address checks apply.", update_allowed=True)
VALUE_SPECS = mapping(
    "Other members of the request, for extensions of Neutron.", key=None, default={}, update_allowed=True
)


class NeutronType(CloudType):
    """A type of Neutron, whose property ``value_specs``, if it has one, adds members to the request."""

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {**super().specify(context, resource, properties), **value_specs(properties)}


def value_specs(properties: Properties) -> Mapping[str, Any]:
    """Return the entries of ``value_specs``. Raises ResourceFailure for Stoker's own keys."""
    specs: Mapping[str, Any] = properties.get("value_specs") or {}
    own = sorted(str(name) for name in specs if str(name).startswith(OWN_PREFIX))
    if own:
        raise ResourceFailure(f"value_specs: the key {own[0]} is reserved")
    return specs
