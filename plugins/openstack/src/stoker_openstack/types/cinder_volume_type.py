"""OS::Cinder::VolumeType: a type of volumes, for administrators only."""

from __future__ import annotations

from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import flag, text


class CinderVolumeType(CloudType):
    name = "OS::Cinder::VolumeType"
    description = "A type of volumes, for administrators only."
    kind = CloudKind.VOLUME_TYPE
    properties = {
        "name": text("Name.", required=True, update_allowed=True),
        "metadata": Property(
            kind="map", update_allowed=True, description="Extra specs, from which Cinder chooses a back end."
        ),
        "is_public": flag("Whether all projects may use the type.", default=True, update_allowed=True),
        "description": text("What the type is for.", update_allowed=True),
        "projects": Property(
            kind="list",
            default=[],
            update_allowed=True,
            each=Property(kind="string", constraint="keystone.project"),
            description="Names or ids of the projects that may use a type that is not public.",
        ),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {
            "name": properties["name"],
            "description": properties["description"] or "",
            "is_public": properties["is_public"],
            "extra_specs": properties["metadata"] or {},
            "stoker:projects": properties["projects"] or [],
        }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for a public type with projects."""
        projects = properties["projects"]
        if properties["is_public"] is True and isinstance(projects, list) and projects:
            raise StackValidationFailed('Can not specify property "projects" if the volume type is public.')
