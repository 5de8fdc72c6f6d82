"""OS::Heat::SoftwareComponent: configs for the actions of a component's life cycle, each with its own hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.config import COMPONENT
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, NoSuchAttribute, Properties
from stoker.resources.deploys import ProvidesConfig
from stoker.resources.properties import Property
from stoker.store import configs
from stoker.types.software_config import COMMON, ConfigType, validate

_CONFIG = Property(
    kind="map",
    schema={
        "actions": Property(kind="list", each=Property(kind="string"), default=["CREATE", "UPDATE"]),
        "config": Property(kind="string"),
        "tool": Property(kind="string", required=True),
    },
)


class SoftwareComponent(ProvidesConfig, ConfigType):
    name = "OS::Heat::SoftwareComponent"
    description = "A software component with a config for every action of its life."
    properties = {
        **{name: schema for name, schema in COMMON.items() if name != "group"},
        "configs": Property(
            kind="list", each=_CONFIG, required=True, description="What is run for which actions, and by which hook."
        ),
    }
    attributes = {"configs": "The configs of the component."}

    def declare(self, properties: Properties) -> Mapping[str, Any]:
        common = {name: properties[name] for name in ("options", "inputs", "outputs")}
        return {"group": COMPONENT, "config": {"configs": properties["configs"]}, **common}

    def content(self, context: Context, resource: Resource, properties: Properties) -> Mapping[str, Any]:
        return self.declare(properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name != "configs":
            raise NoSuchAttribute(name)
        config = configs.find(context.tx, resource.physical_id or "")
        # ``external_id`` may name a config of any other group.
        return config.config.get("configs") if config and isinstance(config.config, dict) else None

    def validate(self, properties: Properties) -> None:
        validate(properties)
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
