"""A whole template: its sections taken apart and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stoker.hot import graph
from stoker.hot.bounds import MAX_TEMPLATE
from stoker.hot.check import Names, check_calls, check_depends_on
from stoker.hot.definition import Definition, define
from stoker.hot.flaw import Flaw, flaw
from stoker.hot.parameters.groups import parse_groups
from stoker.hot.parameters.schema import ParameterSchema, parse_schema
from stoker.hot.paths import Path
from stoker.hot.shapes import map_at, optional_map, scalar_text
from stoker.hot.text import read
from stoker.hot.versions import VERSION_KEY, version_of
from stoker.model.errors import InvalidTemplateSection, StokerError

_SECTIONS = frozenset((VERSION_KEY, "description", "parameter_groups", "parameters", "resources", "outputs"))
_CONDITIONS_SINCE = "2016-10-14"


@dataclass(frozen=True)
class OutputDefinition:
    name: str
    value: Any
    description: str = "No description given"


@dataclass(frozen=True)
class Template:
    """Everything in it has been checked as far as that is possible without the types of the resources."""

    version: str
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: tuple[Mapping[str, Any], ...]
    resources: Mapping[str, Definition]
    outputs: Mapping[str, OutputDefinition]
    #: The template as written, ready for JSON.
    document: dict[str, Any] = field(repr=False)

    @cached_property
    def requirements(self) -> Mapping[str, frozenset[str]]:
        """What every resource requires."""
        return {name: definition.requires for name, definition in self.resources.items()}


def parse(source: str | Mapping[str, Any], files: Mapping[str, str] | None = None) -> Template:
    """
    Read a template, YAML or JSON text or decoded already, and check it.

    With ``files``, every file that it names must be among them. Errors name the place, and the line in a text.
    """
    document = read(source, "Template", MAX_TEMPLATE)
    try:
        template = _build(document)
        _check(template, files)
    except Flaw as found:
        raise found.error(source) from None
    graph.sort(template.requirements)
    return template


def order(template: Template) -> tuple[str, ...]:
    """The names of all resources, each after everything that it requires."""
    return graph.sort(template.requirements)


def _build(document: dict[str, Any]) -> Template:
    version = _version(document)
    _check_sections(document, version)
    parameters = {
        name: parse_schema(name, raw, version) for name, raw in optional_map(document, "parameters", ()).items()
    }
    return Template(
        version=version,
        description=scalar_text(document.get("description"), ("description",), "No description"),
        parameters=parameters,
        parameter_groups=parse_groups(document.get("parameter_groups"), parameters),
        resources={name: define(name, raw, version) for name, raw in optional_map(document, "resources", ()).items()},
        outputs={name: _output(name, raw) for name, raw in optional_map(document, "outputs", ()).items()},
        document=document,
    )


def _version(document: dict[str, Any]) -> str:
    try:
        return version_of(document)
    except StokerError as error:
        raise Flaw(error.message, (VERSION_KEY,), type(error)) from None


def _check_sections(document: dict[str, Any], version: str) -> None:
    for name, section in document.items():
        if name in _SECTIONS:
            continue
        if name != "conditions" or version < _CONDITIONS_SINCE:
            raise Flaw(f"The template section is invalid: {name}", (name,), InvalidTemplateSection)
        if section:
            raise Flaw('"conditions" are not supported by this version of Stoker', (name,), InvalidTemplateSection)


def _output(name: str, raw: Any) -> OutputDefinition:
    path: Path = ("outputs", name)
    data = map_at(raw, path)
    for key in data:
        if key == "condition":
            raise flaw((*path, key), '"condition" is not supported by this version of Stoker')
        if key not in ("value", "description"):
            raise flaw((*path, key), f"Invalid keyword(s) inside an output definition: {key}")
    if "value" not in data:
        raise flaw(path, 'Each output must contain a "value" key.')
    description = scalar_text(data.get("description"), (*path, "description"), "No description given")
    return OutputDefinition(name, data["value"], description)


def _check(template: Template, files: Mapping[str, str] | None) -> None:
    for name in template.resources:
        if name in template.parameters:
            raise flaw(("resources", name), "a parameter has the same name")
    names = Names(template.version, template.resources.keys(), template.parameters.keys(), files)
    for definition in template.resources.values():
        path: Path = ("resources", definition.name)
        check_depends_on(definition.depends_on, path, names)
        check_calls(definition.properties, (*path, "properties"), names)
        check_calls(definition.metadata, (*path, "metadata"), names)
        check_calls(definition.update_policy, (*path, "update_policy"), names)
    for output in template.outputs.values():
        check_calls(output.value, ("outputs", output.name, "value"), names)
