"""OS::Heat::StructuredConfig: a config whose content is a map."""

from __future__ import annotations

from stoker.resources.properties import Property
from stoker.types.software_config import COMMON, SoftwareConfig


class StructuredConfig(SoftwareConfig):
    name = "OS::Heat::StructuredConfig"
    description = "Describes and stores a software configuration that is structured data."
    properties = {**COMMON, "config": Property(kind="map", description="The content, as data.")}
