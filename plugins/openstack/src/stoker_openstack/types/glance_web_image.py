"""OS::Glance::WebImage: an image that the image service fetches from a URL."""

from __future__ import annotations

from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import Member, flag, is_known, object_name, text, texts

_AMAZON = ("ami", "ari", "aki")
_CONTAINER_FORMATS = (*_AMAZON, "bare", "ovf", "ova", "docker")
_DISK_FORMATS = (*_AMAZON, "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop")


class GlanceWebImage(CloudType):
    name = "OS::Glance::WebImage"
    description = "An image that the image service fetches from a URL."
    kind = CloudKind.IMAGE
    id_constraint = "glance.image"
    properties = {
        "name": object_name(),
        "id": text("Id; by default the service chooses one."),
        "location": text("URL of the image's data.", key="stoker:location", required=True),
        "container_format": text("Format of the container.", required=True, allowed=_CONTAINER_FORMATS),
        "disk_format": text("Format of the disk.", required=True, allowed=_DISK_FORMATS),
        "min_disk": Member(kind="integer", default=0, minimum=0, description="Least disk of a server in GiB."),
        "min_ram": Member(kind="integer", default=0, minimum=0, description="Least memory of a server in MiB."),
        "protected": flag("Whether the image cannot be deleted.", default=False, update_allowed=True),
        "visibility": text(
            "Who can use the image.",
            default="private",
            allowed=("public", "private", "community", "shared"),
            update_allowed=True,
        ),
        "tags": Member(kind="list", update_allowed=True, description="Tags of the image."),
        "architecture": text("Architecture of the operating system.", update_allowed=True),
        "kernel_id": text("Id of the image of the kernel.", update_allowed=True),
        "ramdisk_id": text("Id of the image of the RAM disk.", update_allowed=True),
        "os_distro": text("Distribution of the operating system.", update_allowed=True),
        "os_version": text("Version of the operating system.", update_allowed=True),
        "owner": text("Project that owns the image, for administrators only.", update_allowed=True),
        "extra_properties": Property(kind="map", default={}, update_allowed=True, description="Other properties."),
        "members": texts("Projects that share the image.", key="stoker:members", update_allowed=True),
        "active": flag("Whether servers can use the image.", key="stoker:active", default=True, update_allowed=True),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        extra = {str(name): value for name, value in properties["extra_properties"].items()}
        return {**extra, **super().specify(context, resource, properties)}

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for formats that do not fit together, and for members of a private image."""
        container, disk = properties["container_format"], properties["disk_format"]
        if is_known(container, disk) and container != disk and (container in _AMAZON or disk in _AMAZON):
            raise StackValidationFailed(
                f"Invalid mix of disk and container formats. When setting a disk or container format to one of 'aki',"
                f" 'ari', or 'ami', the container and disk formats must match: {disk}, {container}."
            )
        if properties["members"] and is_known(properties["visibility"]) and properties["visibility"] != "shared":
            raise StackValidationFailed("members need the visibility shared.")
