"""OS::Barbican::Secret: a secret of the key manager."""

from __future__ import annotations

from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import Member, object_name, text


class BarbicanSecret(CloudType):
    name = "OS::Barbican::Secret"
    description = "A secret of the key manager."
    kind = CloudKind.SECRET
    properties = {
        "name": object_name("Name; by default the resource's."),
        "payload": text("The secret itself."),
        "payload_content_type": text("Type of the payload.", allowed=("text/plain", "application/octet-stream")),
        "payload_content_encoding": text("Encoding of a binary payload.", allowed=("base64",)),
        "secret_type": text(
            "Type of the secret.",
            default="opaque",
            allowed=("symmetric", "public", "private", "certificate", "passphrase", "opaque"),
        ),
        "mode": text("Mode of the algorithm."),
        "algorithm": text("Algorithm for which the secret is."),
        "bit_length": Member(kind="integer", minimum=0, description="Length of the secret in bits."),
        "expiration": text("Time at which the secret expires, in ISO 8601."),
    }
    attributes = {"status": "Status.", "decrypted_payload": "The secret itself."}

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {**super().specify(context, resource, properties), "name": properties["name"] or resource.name}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Store the secret. Everything that quotes it is encrypted, and redacted in output for people."""
        if properties["payload"]:
            context.tx.secrets.learn([properties["payload"]])
        return super().create(context, resource, properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        is_payload = name == "decrypted_payload"
        return resource.properties.get("payload") if is_payload else super().attribute(context, resource, name)

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless payload, its type and its encoding fit together."""
        payload, kind, encoding = (
            properties[name] for name in ("payload", "payload_content_type", "payload_content_encoding")
        )
        if payload is not None and kind is None:
            raise StackValidationFailed("payload_content_type is needed with payload.")
        if payload is None and kind not in (None, UNKNOWN):
            raise StackValidationFailed("payload is needed with payload_content_type.")
        if encoding is not None and kind not in (UNKNOWN, "application/octet-stream"):
            raise StackValidationFailed("payload_content_encoding is for the type application/octet-stream only.")
        if kind == "application/octet-stream" and encoding is None:
            raise StackValidationFailed("payload_content_encoding is needed for the type application/octet-stream.")
