"""OS::Nova::KeyPair: a public key for logins to servers. Stoker generates the private key."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties
from stoker.types import user_data
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, observe
from stoker_openstack.types.cloud_properties import flag, object_name, text

#: Keys of the resource's data. The store encrypts every column with a private key.
_PRIVATE, _PUBLIC = "private_key", "public_key"


class NovaKeypair(CloudType):
    name = "OS::Nova::KeyPair"
    description = "A public key for logins to servers."
    kind = CloudKind.KEYPAIR
    id_constraint = "nova.keypair"
    properties = {
        "name": object_name("Name of the key pair.", required=True),
        "public_key": text("Public key in OpenSSH's format; by default, Stoker generates a pair (RSA, 2048 bits)."),
        "save_private_key": flag(
            "Whether to keep a generated private key, encrypted, for the attribute private_key.",
            key=None,
            default=False,
        ),
        "type": text("Type of the key.", allowed=("ssh", "x509")),
        "user": text("Name or id of the owner, for administrators only.", key="user_id"),
    }
    attributes = {
        "private_key": "The generated private key; empty unless save_private_key is set.",
        "public_key": "The public key.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        public_key = resource.data.get(_PUBLIC) or properties["public_key"]
        return {**super().specify(context, resource, properties), "public_key": public_key}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the key pair. Without a public key, Stoker generates one, and keeps the private key if wanted."""
        data: dict[str, Any] = {_PUBLIC: properties["public_key"]}
        if properties["public_key"] is None:
            pair = user_data.generate()
            data = {_PUBLIC: pair.public, **({_PRIVATE: pair.private} if properties["save_private_key"] else {})}
        outcome = super().create(context, replace(resource, data=data), properties)
        return replace(outcome, data=data)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name == _PRIVATE:
            return resource.data.get(_PRIVATE, "")
        return resource.data.get(_PUBLIC) or observe(context, resource).get(_PUBLIC)

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for an invalid name, and for a certificate that Stoker would have to generate."""
        if properties["name"] == "":
            raise StackValidationFailed("name must have between 1 and 255 characters, not 0")
        if properties["type"] == "x509" and properties["public_key"] is None:
            raise StackValidationFailed(
                "a key pair of the type x509 needs public_key: Stoker generates keys for SSH only"
            )
