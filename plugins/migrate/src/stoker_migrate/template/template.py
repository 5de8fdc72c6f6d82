"""Migrates one template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_client.errors import BadInput
from stoker_migrate.template.enrolled_servers import ServerMigration, server_name
from stoker_migrate.template.parameters import add_parameters, remove_unused
from stoker_migrate.template.parts import Change, Interface, NewParameter, Part, TemplateContext, list_parts
from stoker_migrate.template.references import References, list_parameters
from stoker_migrate.template.source_text import SourceText
from stoker_migrate.template.types import CHAIN, GROUP, SCALING_GROUP, Kind, is_template

#: Properties of an AutoScalingGroup that a ResourceGroup does not have.
_SCALING = ("min_size", "max_size", "desired_capacity", "cooldown", "rolling_updates")


def migrate_template(text: str, context: TemplateContext) -> tuple[str, Interface]:
    """
    Return the migrated template, and the changes of its parameters.

    Raises BadInput if the text is no HOT template.
    """
    source = SourceText(text, context.title)
    if "heat_template_version" not in source.data:
        raise BadInput(f"{context.title}: only HOT templates can be migrated; rewrite the template in HOT first")
    if source.is_rewritten:
        context.note((), Change.WARNING, "the file has YAML aliases: its comments are lost")
    interface = Interface(source.section("parameters"))
    _TemplateMigration(source, context, interface).run()
    changed = SourceText(source.render(), context.title)
    remove_unused(changed, list_parameters(source.data), interface, context)
    return changed.render(), interface


class _TemplateMigration:
    def __init__(self, source: SourceText, context: TemplateContext, interface: Interface) -> None:
        self._source = source
        self._context = context
        self._interface = interface
        self._resources: Mapping[str, Any] = source.section("resources")
        self._parts = list_parts(source, context)
        self._dropped = {part.name: part for part in self._parts if part.kind is Kind.INFRASTRUCTURE}
        servers = {part.name: part.is_group for part in self._parts if part.kind is Kind.SERVER}
        self._references = References(servers, self._dropped, lambda new: interface.add(new, context))
        self._references.link(self._resources)

    def run(self) -> None:
        """Record the edits of all parts in the source."""
        servers = ServerMigration(self._source, self._context, self._references, self._interface)
        for part in self._parts:
            self._migrate_part(part, servers)
        for name, definition in self._resources.items():
            if name not in self._dropped and isinstance(definition, dict):
                self._migrate_references(name, definition, servers)
        self._migrate_outputs()
        add_parameters(self._source, self._interface.added)

    def _migrate_part(self, part: Part, servers: ServerMigration) -> None:
        if part.kind is Kind.INFRASTRUCTURE:
            self._source.remove(("resources", part.name))
            self._context.note(("resources", part.name), Change.DROPPED, part.definition["type"])
            return
        if part.is_group and self._context.resolve(self._resources[part.name]["type"]) == SCALING_GROUP:
            self._replace_scaling_group(part.name)
        if part.kind is Kind.SERVER:
            servers.migrate(part)
        elif part.kind is Kind.NESTED:
            self._migrate_nested(part)
        elif part.definition["type"] == CHAIN:
            self._migrate_chain(part)
        elif part.kind is Kind.UNKNOWN:
            text = f"the type {part.definition['type']} is unknown: kept as it is"
            self._context.note(part.path, Change.WARNING, text)

    def _replace_scaling_group(self, name: str) -> None:
        path = ("resources", name)
        properties = self._resources[name]["properties"]
        self._source.replace((*path, "type"), GROUP)
        self._source.rename_key((*path, "properties", "resource"), "resource_def")
        for key in properties:
            if key in _SCALING:
                self._source.remove((*path, "properties", key))
        self._source.add((*path, "properties"), "count", properties.get("desired_capacity", properties.get("min_size")))
        self._context.note(path, Change.REPLACED, f"{SCALING_GROUP} becomes {GROUP} of a fixed size")

    def _migrate_nested(self, part: Part) -> None:
        """Pass the parameters that the migrated nested template has."""
        inner = self._context.migrate(part.template)
        path = (*part.path, "properties")
        for name in part.properties:
            if name in inner.removed:
                self._source.remove((*path, name))
        values = {}
        for new in inner.needed:
            own = NewParameter(f"{part.name}_{new.name}", f"{part.name}: {new.description}", new.is_server_name)
            parameter = self._interface.add(own, self._context)
            values[new.name] = server_name(parameter, part.index if new.is_server_name else None)
        if part.properties:
            for name, value in values.items():
                self._source.add(path, name, value)
        elif values:
            self._source.add(part.path, "properties", values, after="type")

    def _migrate_chain(self, part: Part) -> None:
        """Migrate the templates of a chain. The members share their properties, so that they get no new ones."""
        for name in part.properties.get("resources") or ():
            resolved = self._context.resolve(name) if isinstance(name, str) else ""
            inner = self._context.migrate(resolved) if is_template(resolved) else Interface()
            if inner.needed:
                text = f"pass {', '.join(new.name for new in inner.needed)} to {name}"
                self._context.note((*part.path, "properties", "resource_properties"), Change.WARNING, text)

    def _migrate_references(self, name: str, definition: Mapping[str, Any], servers: ServerMigration) -> None:
        path = ("resources", name)
        for section, value in self._source.remaining(path).items():
            if section != "depends_on":
                for inner, new in self._references.replacements(value).items():
                    self._source.replace((*path, section, *inner), new)
        declared = definition.get("depends_on")
        before = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) else []
        after = [other for other in before if other not in self._dropped] + servers.boots_before(definition)
        if after == before:
            return
        if not after:
            self._source.remove((*path, "depends_on"))
        elif declared is None:
            self._source.add(path, "depends_on", after, after="type")
        else:
            self._source.replace((*path, "depends_on"), after)

    def _migrate_outputs(self) -> None:
        for name, output in self._source.section("outputs").items():
            path = ("outputs", name)
            if self._context.is_root and (unmapped := self._references.unmapped(output)):
                self._source.remove(path)
                self._context.note(path, Change.WARNING, f"dropped; its value was: {' '.join(unmapped)}")
                continue
            for inner, new in self._references.replacements(output, is_optional=True).items():
                self._source.replace((*path, *inner), new)
                self._context.note(path, Change.MAPPED, f"to {new}")
