"""OS::Heat::CloudConfig: a cloud-init configuration, stored as YAML."""

from __future__ import annotations

import yaml

from stoker.deployments.configs import new_config
from stoker.model.stack import Resource
from stoker.resources import software_config
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure, ResourceType, physical_name
from stoker.resources.properties import Property


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    try:
        text = yaml.safe_dump(properties["cloud_config"] or {}, allow_unicode=True)
    except RecursionError:
        raise ResourceFailure("cloud_config: the value is nested too deeply to be written as YAML") from None
    config, _ = new_config(
        context.tx,
        context.project_id,
        name=physical_name(context, resource),
        group="Heat::Ungrouped",
        config=f"#cloud-config\n{text}",
    )
    return Outcome(physical_id=config.id)


TYPE = ResourceType(
    name="OS::Heat::CloudConfig",
    properties={"cloud_config": Property(kind="map", description="The configuration, as data.")},
    attributes={"config": "The config's content."},
    create=create,
    delete=software_config.delete,
    adopt=software_config.adopt,
    exists=software_config.exists,
    attribute=software_config.attribute,
    show=software_config.show,
    description="A configuration for cloud-init.",
)
