"""Properties that several types of Neutron have."""

from __future__ import annotations

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
