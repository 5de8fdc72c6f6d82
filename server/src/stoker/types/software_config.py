"""OS::Heat::SoftwareConfig: a config with text content; and what all types of configs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments import representation, schema
from stoker.deployments.configs import check_option, check_options, expand_known, new_config
from stoker.deployments.hook_check import DELIVERED
from stoker.hot import UNKNOWN, weigh
from stoker.model.config import UNGROUPED
from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.deploys import ProvidesConfig
from stoker.resources.properties import Property
from stoker.store import configs

_FIELD: Mapping[str, Property] = {
    "name": Property(kind="string", required=True),
    "description": Property(kind="string", default=""),
    "type": Property(kind="string", default="String", allowed=schema.TYPES),
}
INPUT = Property(
    kind="map",
    schema={
        **_FIELD,
        "default": Property(kind="any"),
        "replace_on_change": Property(kind="boolean", default=False),
        "secret": Property(kind="boolean", default=False),
    },
)
OUTPUT = Property(kind="map", schema={**_FIELD, "error_output": Property(kind="boolean", default=False)})

COMMON: Mapping[str, Property] = {
    "group": Property(
        kind="string", longest=255, default=UNGROUPED, description="Names the hook that runs the config."
    ),
    "options": Property(
        kind="map", description="Options for the hook, and for runs: user, limits, order (docs/runs.md)."
    ),
    "inputs": Property(kind="list", each=INPUT, description="Values the config takes."),
    "outputs": Property(kind="list", each=OUTPUT, description="Values the config gives back."),
}


def validate(properties: Properties) -> None:
    """Raise Invalid for options, inputs and outputs that a config cannot have, as far as they are known."""
    expanded = expand_known(properties)
    if not weigh(expanded["options"])[1]:
        check_option(expanded["options"])
    for name, read in (("inputs", schema.inputs), ("outputs", schema.outputs)):
        entries = expanded[name]
        if entries is not UNKNOWN and all(_known(entry) for entry in entries or ()):
            read(entries)

    options = properties["options"]
    if options is not UNKNOWN:
        evaluated = {name: value for name, value in (options or {}).items() if not _has_unknown(value)}
        # A hook that the config delivers may undo, even if the value is not known yet.
        check_options(evaluated, None if _has_unknown((options or {}).get(DELIVERED)) else expanded.get("group"))


def _has_unknown(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_unknown(member) for member in value.values())
    return any(_has_unknown(member) for member in value) if isinstance(value, list | tuple) else value is UNKNOWN


def _known(entry: Any) -> bool:
    return entry is not UNKNOWN and not any(value is UNKNOWN for value in entry.values())


class ConfigType(ResourceType):
    """A type whose resources are configs. A config is immutable: every change replaces it."""

    attributes = {"config": "The config's content."}

    def content(self, context: Context, resource: Resource, properties: Properties) -> Mapping[str, Any]:
        """Return the arguments of ``new_config``."""
        raise NotImplementedError

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        content = self.content(context, resource, properties)
        config, _ = new_config(context.tx, context.project_id, name=physical_name(context, resource), **content)
        return Outcome(physical_id=config.id)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        if resource.physical_id:
            configs.delete(context.tx, resource.physical_id)
        return DONE

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Verify that the config exists. Raises ResourceFailure if it does not."""
        id = resource.physical_id
        if not self.exists(context, id or ""):
            raise ResourceFailure(
                f"The software config ({id}) cannot be adopted: it does not exist, or belongs to a stack."
            )
        return DONE

    def exists(self, context: Context, id: str) -> bool:
        return configs.exists(context.tx, id, context.project_id)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name != "config":
            raise NoSuchAttribute(name)
        config = configs.find(context.tx, resource.physical_id or "")
        return config.config if config else None

    def show(self, context: Context, resource: Resource) -> Any:
        return representation.config(context.tx, resource.physical_id or "", context.project_id)


class SoftwareConfig(ProvidesConfig, ConfigType):
    name = "OS::Heat::SoftwareConfig"
    description = "Describes and stores a software configuration."
    properties = {**COMMON, "config": Property(kind="string", description="The script, manifest, playbook …")}

    def declare(self, properties: Properties) -> Mapping[str, Any]:
        return {name: properties[name] for name in ("group", "config", "options", "inputs", "outputs")}

    def content(self, context: Context, resource: Resource, properties: Properties) -> Mapping[str, Any]:
        return self.declare(properties)

    def validate(self, properties: Properties) -> None:
        validate(properties)
