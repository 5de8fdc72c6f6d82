"""Resource types whose resources are configs: text, structured data, a component, and data for cloud-init."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.mime.multipart import MIMEMultipart
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import yaml

from stoker.deployments import schema
from stoker.deployments.configs import check_option, check_options, expand_known, new_config
from stoker.deployments.derive import redact_config
from stoker.hot import UNKNOWN, has_unknown
from stoker.hot.words import clip
from stoker.model.config import COMPONENT, HOOK_OPTION, UNGROUPED
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import (
    DONE,
    AdoptionFailure,
    Context,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.properties import Property
from stoker.resources.roles import ProvidesConfig
from stoker.store import configs, rows
from stoker.types.user_data import create_part, walk_parts

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
    if not has_unknown(expanded["options"]):
        check_option(expanded["options"])
    for name, read in (("inputs", schema.inputs), ("outputs", schema.outputs)):
        entries = expanded[name]
        if entries is not UNKNOWN and all(_known(entry) for entry in entries or ()):
            read(entries)

    if properties["options"] is not UNKNOWN:
        _check_known_options(properties["options"] or {}, expanded.get("group"))


def _check_known_options(options: Mapping[str, Any], group: Any) -> None:
    evaluated = {name: value for name, value in options.items() if not has_unknown(value)}
    # A hook that the config delivers may undo, even if the value is not known yet.
    check_options(evaluated, None if has_unknown(options.get(HOOK_OPTION)) else group)


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
        """Verify also that the config exists. Raises AdoptionFailure."""
        if not self.exists(context, resource.physical_id or ""):
            raise AdoptionFailure(resource.type, resource.physical_id)
        return super().adopt(context, resource, properties)

    def exists(self, context: Context, id: str) -> bool:
        return configs.exists(context.tx, id, context.project_id)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        config = configs.find(context.tx, resource.physical_id or "")
        return config.config if config else None

    def show(self, context: Context, resource: Resource) -> Any:
        body = configs.body(context.tx, resource.physical_id or "", context.project_id)
        return redact_config(context.tx, rows.load(body))


class DeclaredType(ProvidesConfig, ConfigType):
    """A type of configs whose content is known before they exist, as far as the properties are."""

    def content(self, context: Context, resource: Resource, properties: Properties) -> Mapping[str, Any]:
        return self.declare(properties)


class SoftwareConfig(DeclaredType):
    name = "OS::Heat::SoftwareConfig"
    description = "Describes and stores a software configuration."
    properties = {**COMMON, "config": Property(kind="string", description="The script, manifest, playbook …")}

    def declare(self, properties: Properties) -> Mapping[str, Any]:
        return {name: properties[name] for name in ("group", "config", "options", "inputs", "outputs")}

    def validate(self, properties: Properties) -> None:
        validate(properties)


class StructuredConfig(SoftwareConfig):
    name = "OS::Heat::StructuredConfig"
    description = "Describes and stores a software configuration that is structured data."
    properties = {**COMMON, "config": Property(kind="map", description="The content, as data.")}


_CONFIG = Property(
    kind="map",
    schema={
        "actions": Property(kind="list", each=Property(kind="string"), default=["CREATE", "UPDATE"]),
        "config": Property(kind="string"),
        "tool": Property(kind="string", required=True),
    },
)


class SoftwareComponent(DeclaredType):
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

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
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


#: Valid MIME subtypes of ``text/``.
_SUBTYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}", re.ASCII)

_PART = Property(
    kind="map",
    schema={
        "config": Property(kind="string", required=True),
        "filename": Property(kind="string"),
        "type": Property(kind="string", default="text", allowed=("text", "multipart")),
        "subtype": Property(kind="string"),
    },
)


def _content(context: Context, text: str) -> str:
    """Return the content of the config whose id is ``text``; if there is none, return ``text``."""
    try:
        id = str(UUID(text))
    except ValueError:
        return text
    config = configs.find(context.tx, id)
    if config is None or config.project_id != context.project_id:
        return text
    content = "" if config.config is None else config.config
    return content if isinstance(content, str) else rows.dump(content)


def _subtype(filename: str | None) -> str:
    stem = PurePosixPath(filename or "").stem
    return stem if _SUBTYPE.fullmatch(stem) else "plain"


class MultipartMime(ConfigType):
    name = "OS::Heat::MultipartMime"
    description = "Several configs put together as multipart MIME."
    properties = {
        "group": Property(
            kind="string", longest=255, default=UNGROUPED, description="Names the hook that runs the config."
        ),
        "parts": Property(kind="list", each=_PART, default=[], description="The parts, in their order."),
    }

    def content(self, context: Context, resource: Resource, properties: Properties) -> Mapping[str, Any]:
        # A random boundary would change the text each time, so the boundary derives from the resource's id.
        whole = MIMEMultipart(boundary=f"part-{resource.id}")
        for part in properties["parts"] or ():
            text = _content(context, part["config"])
            inner = [(text, None, _subtype(part["filename"]))] if part["type"] != "multipart" else walk_parts(text)
            for content, filename, subtype in inner:
                name = part["filename"] or filename
                whole.attach(create_part(content, name or None, part["subtype"] or subtype))
        return {"group": properties["group"], "config": whole.as_string()}

    def validate(self, properties: Properties) -> None:
        """Reject subtypes and filenames that could inject headers, for example by a line break."""
        parts = properties["parts"]
        for part in () if parts is UNKNOWN else parts or ():
            subtype, filename = (None, None) if part is UNKNOWN else (part["subtype"], part["filename"])
            if isinstance(subtype, str) and subtype and not _SUBTYPE.fullmatch(subtype):
                raise StackValidationFailed(f"parts: the subtype {clip(repr(subtype))} is none")
            if isinstance(filename, str) and not filename.isprintable():
                raise StackValidationFailed(f"parts: the filename {clip(repr(filename))} cannot be printed")
