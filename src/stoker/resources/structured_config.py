"""OS::Heat::StructuredConfig: a config whose content is a map."""

from __future__ import annotations

from stoker.resources import software_config
from stoker.resources.base import ResourceType
from stoker.resources.properties import Property

TYPE = ResourceType(
    name="OS::Heat::StructuredConfig",
    properties={**software_config.COMMON, "config": Property(kind="map", description="The content, as data.")},
    attributes=software_config.TYPE.attributes,
    create=software_config.create,
    delete=software_config.delete,
    adopt=software_config.adopt,
    exists=software_config.exists,
    attribute=software_config.attribute,
    show=software_config.show,
    validate=software_config.validate,
    description="Describes and stores a software configuration that is structured data.",
)
