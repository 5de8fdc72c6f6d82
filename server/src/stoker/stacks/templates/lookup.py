"""The types that a template names: resource types, files of nested stacks, and help for unknown names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from functools import lru_cache
from typing import Any

from stoker import hot
from stoker.catalog.entry import SCHEME
from stoker.hot import UNKNOWN, Definition, Environment, Flaw, Template
from stoker.hot.flaw import Path
from stoker.hot.words import clip, list_few, suggest
from stoker.model.errors import StackValidationFailed, StokerError
from stoker.resources import properties as schemas
from stoker.resources.base import Properties, ResourceType
from stoker.resources.properties import Property, PropertyError
from stoker.resources.roles import describe_missing, is_template_name
from stoker.stacks.engine import Engine
from stoker.stacks.templates.report import FlawReport

#: Services whose types an installed provider adds, and others of OpenStack, whose types are like none of Stoker's.
_PROVIDED = ("OS::Neutron", "OS::Nova", "OS::Cinder", "OS::Glance", "OS::Barbican")
_OTHERS = (
    *("OS::Keystone", "OS::Octavia", "OS::Designate", "OS::Manila", "OS::Magnum", "OS::Trove", "OS::Aodh"),
    *("OS::Mistral", "OS::Heat::AutoScalingGroup", "AWS::"),
)
_MAP_IT = "map the type to OS::Heat::None, or to a template, in the environment's resource_registry."
_NO_ENTRY = "The catalog has no such entry: `stoker catalog list` shows all entries."
_MAP_THEM = "or map the types to others in the environment's resource_registry."
#: Maximum number of resources that one error lists.
_FEW = 5


_KINDS: Mapping[str, schemas.Kind] = {
    "string": "string",
    "number": "number",
    "comma_delimited_list": "any",  # also text with commas, which the parameter itself parses
    "json": "any",
    "boolean": "boolean",
}


@lru_cache(maxsize=64)
def parse_once(text: str) -> Template:
    """Parse a template and cache it: a thousand members of one template are parsed once."""
    return hot.parse(text)


class TemplateTypes:
    """Finds the types of the resources of all templates of one request. Errors are added to ``report``."""

    def __init__(self, engine: Engine, files: Mapping[str, str], report: FlawReport) -> None:
        self._engine = engine
        self._files = files
        self._report = report
        #: Errors of unreadable template files, by file name.
        self._unreadable: dict[str, StokerError] = {}
        #: The places (``FlawReport.locate``) of the resources of unknown types, by declared type, resolved type (None:
        #: the environment removes the type), and why the site lacks a known type, which needs a cloud.
        self._unknown: dict[tuple[str, str | None, str], list[tuple[str, str]]] = {}

    def find(self, environment: Environment, definition: Definition) -> ResourceType:
        """Return the type of a resource. A placeholder for an unknown or unreadable type accepts any properties."""
        name = environment.registry.resolve(definition.type, definition.name)
        place: Path = ("resources", definition.name, "type")
        if name is not None and is_template_name(name) and name in self._files:
            with self._report.collect(place):
                return self._provide(name, environment)
            return self._engine.template
        kind = self._engine.types.get(name) if name is not None else None
        reason = "" if kind is None or self._engine.env.has_provider else kind.needs_provider
        if kind is None or reason:
            places = self._unknown.setdefault((definition.type, name, reason), [])
            places.append(self._report.locate(definition.name))
        return kind or self._engine.template

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
        Return the values for the parameters of a template file (``HasNestedStack.template_file``) of the resource whose
        properties are at ``place``. Raises Invalid.
        """
        key, file, values = named
        if file not in self._files:
            raise StackValidationFailed(f"{key}: {describe_missing(file)}")
        schema = self._provide(file, environment).properties or {}
        if values is UNKNOWN:
            return dict.fromkeys(schema, UNKNOWN)
        errors: list[PropertyError] = []
        checked = schemas.check(schema, values or {}, errors=errors)
        for error in errors:
            self._report.add_property_error(error, place)
        return checked

    def report_unknown(self) -> None:
        """Report the unknown types of all templates: one error for each, and one for all that need a cloud."""
        absent = [(key, places) for key, places in self._unknown.items() if key[2]]
        if absent:
            types = "; ".join(f"{clip(declared)} ({_list(places)})" for (declared, _, _), places in absent)
            (_, _, reason), places = absent[0]
            sentence = f"These resources need a cloud: {types}. {reason[:1].upper()}{reason[1:]}; {_MAP_THEM}"
            self._report.add(Flaw(sentence, ("resources", places[0][1], "type")))
        for (declared, resolved, reason), places in self._unknown.items():
            if not reason:
                mapped = f" (mapped to {resolved})" if resolved not in (None, declared) else ""
                sentence = (
                    f"The Resource Type ({clip(declared)}{mapped}) could not be found. "
                    f"Resources of that type: {_list(places)}. {describe_remedy(resolved, self._engine.types)}"
                )
                self._report.add(Flaw(sentence, ("resources", places[0][1], "type")))

    def _provide(self, name: str, environment: Environment) -> ResourceType:
        """Return the type that a template file provides: parameters are properties, outputs are attributes."""
        template, provided = self.parse(name), copy(self._engine.template)
        provided.name = name
        provided.properties = {
            schema.name: Property(
                kind=_KINDS[schema.type],
                required=schema.default is None and schema.name not in environment.parameter_defaults,
                update_allowed=True,
                description=schema.description,
            )
            for schema in template.parameters.values()
        }
        provided.attributes = {output.name: output.description for output in template.outputs.values()}
        return provided


def _list(places: Iterable[tuple[str, str]]) -> str:
    return list_few((place for place, _ in places), _FEW)


def describe_remedy(resolved: str | None, types: Collection[str]) -> str:
    """Return the remedy for an unknown type. ``types``: the names of the site's types."""
    if resolved is None:
        return "The environment's resource_registry removes it."
    if is_template_name(resolved):
        return _NO_ENTRY if resolved.startswith(SCHEME) else "It is a template, and no such file came with it."
    service = resolved.rpartition("::")[0]
    if hint := suggest(resolved, _list_types(types, service)):
        return hint
    if service in _PROVIDED and not any(name.startswith(_PROVIDED[0]) for name in types):
        return f"The types of a cloud are in plugins/openstack of Stoker's source: install it, or {_MAP_IT}"
    if resolved.startswith((*_PROVIDED, *_OTHERS)):
        return f"Stoker has no such type of {service}: {_MAP_IT}"
    return suggest(resolved, types) or f"M{_MAP_IT[1:]}"


def _list_types(types: Iterable[str], service: str) -> list[str]:
    return [name for name in types if name.rpartition("::")[0] == service]
