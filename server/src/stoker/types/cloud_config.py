"""OS::Heat::CloudConfig: a cloud-init configuration, stored as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from stoker.model.config import UNGROUPED
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties, ResourceFailure
from stoker.resources.properties import Property
from stoker.types.software_config import ConfigType


class CloudConfig(ConfigType):
    name = "OS::Heat::CloudConfig"
    description = "A configuration for cloud-init."
    properties = {"cloud_config": Property(kind="map", description="The configuration, as data.")}

    def content(self, context: Context, resource: Resource, properties: Properties) -> Mapping[str, Any]:
        try:
            text = yaml.safe_dump(properties["cloud_config"] or {}, allow_unicode=True)
        except RecursionError:
            raise ResourceFailure("cloud_config: the value is nested too deeply to be written as YAML") from None
        return {"group": UNGROUPED, "config": f"#cloud-config\n{text}"}
