"""The types of a template's resources: types of this site, and types that template files provide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Definition, Environment, Template
from stoker.hot.paths import Path
from stoker.model.errors import StackValidationFailed, StokerError
from stoker.resources import nested_sources
from stoker.resources import properties as schemas
from stoker.resources.base import Properties, ResourceType
from stoker.resources.nested_base import TEMPLATE, is_template_name
from stoker.resources.properties import Property, PropertyError
from stoker.stacks.templates.flaw_report import FlawReport
from stoker.stacks.templates.unknown_types import UnknownTypes

_KINDS: Mapping[str, schemas.Kind] = {
    "string": "string",
    "number": "number",
    "comma_delimited_list": "any",  # also text with commas, which the parameter itself parses
    "json": "any",
    "boolean": "boolean",
}
#: Placeholder for an unknown type, so that the rest of the template can be checked.
_ANY_TYPE = replace(TEMPLATE, name="unknown")


@lru_cache(maxsize=64)
def parse_once(text: str) -> Template:
    """Parse a template and cache it: a thousand members of one template are parsed once."""
    return hot.parse(text)


class TemplateTypes:
    """Finds the types of the resources of all templates of one request. Errors are added to ``report``."""

    def __init__(
        self, types: Mapping[str, ResourceType], files: Mapping[str, str], report: FlawReport, *, has_cloud: bool
    ) -> None:
        """``has_cloud``: the site has a cloud or local servers."""
        self._types = types
        self._has_cloud = has_cloud
        self._files = files
        self._report = report
        #: Errors of unreadable template files, by file name.
        self._unreadable: dict[str, StokerError] = {}
        self._unknown_types = UnknownTypes(types)

    def find(self, environment: Environment, definition: Definition) -> ResourceType:
        """Return the type of a resource. A type that is unknown or cannot be read gets a placeholder."""
        name = environment.registry.resolve(definition.type, definition.name)
        place: Path = ("resources", definition.name, "type")
        if name is not None and is_template_name(name) and name in self._files:
            with self._report.collect(place):
                return self._provide(name, environment)
            return _ANY_TYPE
        resource_type = self._types.get(name) if name is not None else None
        if resource_type is not None:
            if resource_type.needs_cloud and not self._has_cloud:
                self._unknown_types.add_without_cloud(definition, self._report.place, self._report.top)
            return resource_type
        self._unknown_types.add(definition, name, self._report.place, self._report.top)
        return _ANY_TYPE

    def parse(self, name: str) -> Template:
        """Parse a template file. Raises a kind of Invalid, also for later uses of an unreadable file."""
        if name in self._unreadable:
            raise self._unreadable[name]
        try:
            return parse_once(self._files[name])
        except StokerError as error:
            self._unreadable[name] = type(error)(f"{name}: {error.message}")
            raise self._unreadable[name] from None

    def check_parameters(self, named: tuple[str, str, Any], environment: Environment, place: Path) -> Properties:
        """
        Return the values for the parameters of a template file; see ``ResourceType.template_file``.

        ``place``: the path of the resource's properties. Raises Invalid if there is no such file.
        """
        key, file, values = named
        if file not in self._files:
            raise StackValidationFailed(f"{key}: {nested_sources.missing(file)}")
        schema = self._provide(file, environment).properties or {}
        if values is UNKNOWN:
            return dict.fromkeys(schema, UNKNOWN)
        errors: list[PropertyError] = []
        checked = schemas.check(schema, values or {}, errors=errors)
        for error in errors:
            self._report.add_property_error(error, place)
        return checked

    def report_unknown(self) -> None:
        """Report the unknown types of all templates: one error for each type."""
        for flaw in self._unknown_types.flaws():
            self._report.add(flaw)

    def _provide(self, name: str, environment: Environment) -> ResourceType:
        """Return the resource type that a template file provides."""
        template = self.parse(name)
        properties = {
            schema.name: Property(
                kind=_KINDS[schema.type],
                required=schema.default is None and schema.name not in environment.parameter_defaults,
                update_allowed=True,
                description=schema.description,
            )
            for schema in template.parameters.values()
        }
        attributes = {output.name: output.description for output in template.outputs.values()}
        return replace(TEMPLATE, name=name, properties=properties, attributes=attributes)
