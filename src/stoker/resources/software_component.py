"""OS::Heat::SoftwareComponent: configs for the actions of a component's life cycle, each with its own hook."""

from __future__ import annotations

from typing import Any

from stoker.deployments.configs import new_config
from stoker.hot import UNKNOWN
from stoker.model.config import COMPONENT
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources import software_config
from stoker.resources.base import Context, NoSuchAttribute, Outcome, Properties, ResourceType, physical_name
from stoker.resources.properties import Property
from stoker.store import configs

_CONFIG = Property(
    kind="map",
    schema={
        "actions": Property(kind="list", each=Property(kind="string"), default=["CREATE", "UPDATE"]),
        "config": Property(kind="string"),
        "tool": Property(kind="string", required=True),
    },
)


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    config, _ = new_config(
        context.tx,
        context.project_id,
        name=physical_name(context, resource),
        group=COMPONENT,
        config={"configs": properties["configs"]},
        options=properties["options"],
        inputs=properties["inputs"],
        outputs=properties["outputs"],
    )
    return Outcome(physical_id=config.id)


def attribute(context: Context, resource: Resource, name: str) -> Any:
    if name != "configs":
        raise NoSuchAttribute(name)
    config = configs.find(context.tx, resource.physical_id or "")
    # ``external_id`` may name a config of any other group.
    return config.config.get("configs") if config and isinstance(config.config, dict) else None


def validate(properties: Properties) -> None:
    software_config.validate(properties)
    entries = properties["configs"]
    if entries is UNKNOWN:
        return
    if not entries:
        raise StackValidationFailed("configs: at least one config is needed")
    seen: set[str] = set()
    for entry in entries:
        actions = UNKNOWN if entry is UNKNOWN else entry["actions"]
        if actions is UNKNOWN:
            continue
        if not actions:
            raise StackValidationFailed("configs: every config needs at least one of actions")
        for action in actions:
            if action in seen:
                raise StackValidationFailed(f"Defining more than one configuration for the same action ({action})")
            if action is not UNKNOWN:
                seen.add(action)


TYPE = ResourceType(
    name="OS::Heat::SoftwareComponent",
    properties={
        **{name: schema for name, schema in software_config.COMMON.items() if name != "group"},
        "configs": Property(
            kind="list", each=_CONFIG, required=True, description="What is run for which actions, and by which hook."
        ),
    },
    attributes={"configs": "The configs of the component."},
    create=create,
    delete=software_config.delete,
    adopt=software_config.adopt,
    exists=software_config.exists,
    attribute=attribute,
    show=software_config.show,
    validate=validate,
    description="A software component with a config for every action of its life.",
)
