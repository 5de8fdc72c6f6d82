"""OS::Swift::Container: a container of the object store."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties, physical_name
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, observe
from stoker_openstack.types.cloud_properties import flag, object_name, text


class SwiftContainer(CloudType):
    name = "OS::Swift::Container"
    description = "A container of the object store."
    kind = CloudKind.CONTAINER
    properties = {
        "name": object_name(),
        "X-Container-Read": text("Who can read the objects."),
        "X-Container-Write": text("Who can write objects."),
        "X-Container-Meta": Property(kind="map", default={}, description="Metadata of the container."),
        "X-Account-Meta": Property(kind="map", default={}, description="Metadata of the account."),
        "PurgeOnDelete": flag("Whether the deletion includes the container's objects.", default=False),
    }
    attributes = {
        "BytesUsed": "Size of the objects in bytes.",
        "DomainName": "Host of the container's URL.",
        "HeadContainer": "Headers of the container.",
        "ObjectCount": "Number of objects.",
        "RootURL": "URL of the account.",
        "WebsiteURL": "URL of the container.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        headers = {
            name: properties[name] for name in ("X-Container-Read", "X-Container-Write") if properties[name] is not None
        }
        headers |= {f"X-Container-Meta-{name}": str(value) for name, value in properties["X-Container-Meta"].items()}
        account = {f"X-Account-Meta-{name}": str(value) for name, value in properties["X-Account-Meta"].items()}
        return {
            "name": properties["name"] or physical_name(context, resource),
            "headers": headers,
            "stoker:account_headers": account,
            "stoker:purge_on_delete": properties["PurgeOnDelete"],
        }

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        container = observe(context, resource)
        url = container.get("stoker:url") or ""
        if name == "HeadContainer":
            return {header: value for header, value in container.items() if not header.startswith("stoker:")}
        if name in ("ObjectCount", "BytesUsed"):
            return container.get(f"x-container-{'object-count' if name == 'ObjectCount' else 'bytes-used'}")
        if name == "DomainName":
            return urlsplit(url).hostname or ""
        return url if name == "WebsiteURL" else url.rpartition("/")[0]
