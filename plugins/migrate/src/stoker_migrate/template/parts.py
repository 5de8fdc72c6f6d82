"""The parts of one template, and what a migration does with each resource."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker_migrate.template.report import Change, Interface, Report
from stoker_migrate.template.source_text import Path, SourceText, mapping_at
from stoker_migrate.template.types import NOTHING, SCALING_GROUP, Kind, classify, is_template


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
