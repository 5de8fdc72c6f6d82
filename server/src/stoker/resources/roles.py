"""
What checks, plans and previews have to know of resources before they exist: which types have configs, deployments,
servers or nested stacks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, field

from stoker.catalog.entry import SCHEME
from stoker.hot import literal
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties


class ProvidesConfig:
    """A resource type whose resources are configs that deployments run."""

    def declare(self, properties: Properties) -> Mapping[str, Any]:
        """Return the new config: ``group``, ``config``, ``options``, ``inputs``, ``outputs``. Parts may be UNKNOWN."""
        raise NotImplementedError


class RunsConfig:
    """A resource type whose resources run a config, the property ``config``, on servers."""

    #: Whether each server has a deployment of its own in a nested stack.
    is_group = False

    def servers(self, properties: Properties) -> Mapping[str, Any]:
        """Return the servers that the properties name, each under the path of its property. Parts may be UNKNOWN."""
        return {"server": properties.get("server")}


class ProvidesServer:
    """A resource type whose resources are servers, with the policy of ``policy.rules.NAME`` if the type has one."""

    #: Whether a resource may come to represent the enrolled server of its name.
    may_be_enrolled = False


#: Suffixes of type names that denote a template file.
TEMPLATE_ENDINGS = (".yaml", ".template")


def is_template_name(type_name: str) -> bool:
    """Return whether a type is a template: a file, or an entry of the catalog."""
    return type_name.endswith(TEMPLATE_ENDINGS) or type_name.startswith(SCHEME)


def describe_missing(name: str) -> str:
    """Return the error for a template that no file of the request provides."""
    return f"the template {name} is not among the files of the stack: send its text in `files` under this name"


def takes_place(name: str, type: str, properties: Properties, resource: Resource) -> bool:
    """Return whether a new nested stack takes the place of ``resource``, under its name or under another one."""
    return resource.name == name or (resource.type == type and resource.properties == properties)


#: Definitions by member name, as in a template's ``resources``.
Members = Mapping[str, Mapping[str, Any]]


def escape(members: Members) -> Members:
    """Return the definitions for a template. Their values are final: nothing in them is a function."""
    values = ("properties", "metadata")
    return {
        name: {key: literal(part) if key in values else part for key, part in definition.items()}
        for name, definition in members.items()
    }


class NestedSpec(Struct, frozen=True):
    """The desired state of a nested stack: the template, as text or decoded, and values for its parameters."""

    template: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: Abandoned resources that the nested stack takes over, as in Heat's ``adopt_stack_data``.
    adopt: Mapping[str, Any] | None = None
    #: Names of members that this operation neither creates nor changes, whatever their state.
    frozen_members: Collection[str] = ()
    #: If True, a failed member does not stop the others: the operation continues, and fails after all members are
    #: processed.
    lenient: bool = False


class HasNestedStack:
    """A resource type whose resources are nested stacks. ``types.nested_stacks.NestedType`` implements the actions."""

    #: Whether previews show the changes of the resources inside, by ``spec``.
    has_foreseeable_members = False

    def spec(self, context: Context, resource: Resource, properties: Properties) -> NestedSpec:
        """Return the desired state of the nested stack; of a group, after its roll-out."""
        raise NotImplementedError

    def members(self, properties: Properties, *, every: bool = False) -> Members:
        """
        Return the members that a resource with these properties creates, or one of equal ones unless ``every``. Parts
        may be UNKNOWN. Empty for a stack of a template.
        """
        return {}

    def template_file(self, properties: Properties) -> tuple[str, str, Any] | None:
        """Return, if a property names the template: that property, the file, and its parameters (or None, UNKNOWN)."""
        return None


class RunsRemoteStack:
    """A resource type whose property ``template`` is that of a stack at this site or at another Heat."""
