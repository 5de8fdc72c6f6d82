"""
The parts of one template, and what a migration does with each resource.

The report has an entry for each change and for each part that the migration cannot map. The interface of a template is
what its parents must pass, or no longer pass: the parameters that the migration adds or removes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from stoker_migrate.template.source_text import Path, SourceText, mapping_at
from stoker_migrate.template.types import NOTHING, SCALING_GROUP, Kind, classify, is_template


class Change(StrEnum):
    """What happened to a part of a template."""

    REPLACED = "replaced"
    DROPPED = "dropped"
    MAPPED = "mapped"
    ADDED = "added"
    #: The part needs the user's attention.
    WARNING = "warning"


@dataclass
class Report:
    """
    All changes of a migration in the order in which they were made.

    Each has the keys file, part (the path of the part, such as ``resources.web``), change and text.
    """

    rows: list[dict[str, str]] = field(default_factory=list)

    def add(self, file: str, part: str, change: Change, text: str) -> None:
        """Add a change, unless the report has it already."""
        row = {"file": file, "part": part, "change": change.value, "text": text}
        if row not in self.rows:
            self.rows.append(row)


@dataclass(frozen=True)
class NewParameter:
    """A parameter that a migration adds."""

    name: str
    description: str
    #: Whether the value is the name of an enrolled server, which members of a group do not share.
    is_server_name: bool = False
    #: Whether only outputs use the parameter, so that it has an empty default.
    is_optional: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the definition for the section ``parameters``."""
        default = {"default": ""} if self.is_optional else {}
        return {"type": "string", "description": self.description, **default}


@dataclass
class Interface:
    """
    The difference between the parameters of a template before and after its migration.

    ``existing``: the names of the parameters before.
    """

    existing: Collection[str] = ()
    added: dict[str, NewParameter] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    @property
    def needed(self) -> list[NewParameter]:
        """The added parameters without a default."""
        return [new for new in self.added.values() if not new.is_optional]

    def add(self, parameter: NewParameter, context: TemplateContext) -> str:
        """Add a parameter, unless the same one exists. Returns its name, which avoids those of other parameters."""
        name = parameter.name
        number = 1
        while name in self.existing or (name in self.added and self.added[name].description != parameter.description):
            number += 1
            name = f"{parameter.name}_{number}"
        if name not in self.added:
            context.note(("parameters", name), Change.ADDED, parameter.description)
        is_optional = parameter.is_optional and (name not in self.added or self.added[name].is_optional)
        self.added[name] = replace(parameter, name=name, is_optional=is_optional)
        return name


@dataclass(frozen=True)
class Part:
    """A resource, or the definition of a group's members."""

    name: str
    #: Path of the definition, which has a type and properties.
    path: Path
    definition: dict[str, Any]
    kind: Kind
    #: URL of the nested template.
    template: str = ""
    #: The text that stands for a member's index; None outside of groups.
    index: str | None = None

    @property
    def properties(self) -> dict[str, Any]:
        """The properties, or an empty mapping."""
        return mapping_at(self.definition, "properties")

    @property
    def is_group(self) -> bool:
        """Whether the part is the members of a group."""
        return self.index is not None


@dataclass(frozen=True)
class TemplateContext:
    """What the migration of one template needs from the other files."""

    #: The template's name in the report.
    title: str
    is_root: bool
    report: Report
    #: Returns the built-in type, or the URL of the template, that a type means.
    resolve: Callable[[str], str]
    #: Migrates the nested template at a URL.
    migrate: Callable[[str], Interface]
    #: Returns the content of a file that the template names; None if the file cannot be read.
    read: Callable[[str], str | None]

    def note(self, path: Path, change: Change, text: str) -> None:
        """Add an entry to the report."""
        self.report.add(self.title, ".".join(map(str, path)), change, text)


def list_parts(source: SourceText, context: TemplateContext) -> list[Part]:
    """Return the parts of all resources. Of a group with a known type of members, only the members are a part."""
    parts = []
    for name, definition in source.section("resources").items():
        if isinstance(definition, dict) and isinstance(definition.get("type"), str):
            parts.append(_part(name, ("resources", name), definition, context))
    return parts


def _part(
    name: str, path: Path, definition: dict[str, Any], context: TemplateContext, index: str | None = None
) -> Part:
    resolved = context.resolve(definition["type"])
    if is_template(resolved):
        return Part(name, path, definition, Kind.NESTED, resolved, index)
    kind = Kind.KEPT if resolved == NOTHING else classify(resolved)
    if kind is Kind.GROUP and index is None:
        key = "resource" if resolved == SCALING_GROUP else "resource_def"
        member = mapping_at(mapping_at(definition, "properties"), key)
        if isinstance(member.get("type"), str):
            index = str(definition["properties"].get("index_var", "%index%"))
            return _part(name, (*path, "properties", key), member, context, index)
    return Part(name, path, definition, kind, "", index)
