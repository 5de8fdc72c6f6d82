"""OS::Cinder::EncryptedVolumeType: the encryption of a type of volumes, for administrators only."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import text


class CinderEncryptedVolumeType(CloudType):
    name = "OS::Cinder::EncryptedVolumeType"
    description = "The encryption of a type of volumes, for administrators only."
    kind = CloudKind.VOLUME_ENCRYPTION
    properties = {
        "provider": text("Class or format of the encryption, such as luks.", required=True, update_allowed=True),
        "control_location": text(
            "Where volumes are encrypted: by Nova (front-end) or by the storage.",
            default="front-end",
            allowed=("front-end", "back-end"),
            update_allowed=True,
        ),
        "cipher": text(
            "Algorithm and mode of the encryption.", allowed=("aes-xts-plain64", "aes-cbc-essiv"), update_allowed=True
        ),
        "key_size": Property(kind="integer", update_allowed=True, description="Size of the key in bits."),
        "volume_type": text("Name or id of the type.", required=True, constraint="cinder.vtype"),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {
            name: properties[name] for name in ("provider", "control_location", "cipher", "key_size", "volume_type")
        }
