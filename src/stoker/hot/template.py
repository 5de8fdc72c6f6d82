"""A whole template: its sections taken apart and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from stoker.hot import cfn, graph
from stoker.hot.bounds import MAX_TEMPLATE
from stoker.hot.check import Names, check_calls, check_depends_on
from stoker.hot.conditions import Conditions, chosen, decided, has_if
from stoker.hot.definition import Definition, define
from stoker.hot.flaw import Flaw, flaw
from stoker.hot.foreign import rewritten
from stoker.hot.functions._foreign import FOREIGN_UNTIL
from stoker.hot.parameters.groups import parse_groups
from stoker.hot.parameters.schema import ParameterSchema, parse_schema
from stoker.hot.paths import Path
from stoker.hot.scope import Values
from stoker.hot.shapes import map_at, optional_map, scalar_text
from stoker.hot.text import read
from stoker.hot.versions import CFN_VERSIONS, VERSION_KEY, has_conditions, version_of
from stoker.hot.words import clip
from stoker.model.errors import InvalidTemplateSection, StackValidationFailed, StokerError, UserParameterMissing

_SECTIONS = frozenset((VERSION_KEY, "description", "parameter_groups", "parameters", "resources", "outputs"))


@dataclass(frozen=True)
class OutputDefinition:
    name: str
    value: Any
    description: str = "No description given"
    #: As written, until the template's conditions are decided.
    condition: Any = None


@dataclass(frozen=True)
class Template:
    """Everything in it has been checked as far as that is possible without the types of the resources."""

    version: str
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: tuple[Mapping[str, Any], ...]
    resources: Mapping[str, Definition]
    outputs: Mapping[str, OutputDefinition]
    #: As written.
    conditions: Mapping[str, Any] = field(default_factory=dict)
    #: The template as written, ready for JSON.
    document: dict[str, Any] = field(repr=False, default_factory=dict)

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
        path = cfn.written(found.path) if VERSION_KEY not in document else found.path
        raise Flaw(found.sentence, path, found.kind).error(source) from None
    graph.sort(template.requirements)
    return template


def decide(template: Template, parameters: Values, files: Mapping[str, str] | None = None) -> Template:
    """
    The template with its conditions decided: resources that don't count are gone, outputs that don't are null, and
    every ``if`` is the branch it chose. A condition that hangs on an UNKNOWN parameter leaves what hangs on it in.

    Raises StackValidationFailed, or InvalidTemplateReference to a resource that is gone.
    """
    if not _is_conditional(template):
        return template
    try:
        conditions = Conditions(template.conditions, _Parameters(template.version, parameters))
        conditions.decide_all()
        made = replace(
            template,
            resources=_counting(template, conditions),
            outputs={name: _decided_output(each, conditions) for name, each in template.outputs.items()},
            conditions={},
        )
        _check(made, files)
    except Flaw as found:
        raise found.error(template.document) from None
    graph.sort(made.requirements)
    return made


def _is_conditional(template: Template) -> bool:
    if not has_conditions(template.version):
        return False
    return (
        bool(template.conditions)
        or any(
            each.condition is not None or has_if(each.properties) or has_if(each.metadata) or has_if(each.update_policy)
            for each in template.resources.values()
        )
        or any(each.condition is not None or has_if(each.value) for each in template.outputs.values())
    )


def _counting(template: Template, conditions: Conditions) -> dict[str, Definition]:
    kept = {
        name: each
        for name, each in template.resources.items()
        if each.condition is None or conditions.holds(each.condition, ("resources", name, "condition")) is not False
    }
    gone = template.resources.keys() - kept.keys()
    return {
        name: replace(decided(each, conditions), depends_on=tuple(need for need in each.depends_on if need not in gone))
        for name, each in kept.items()
    }


def _decided_output(output: OutputDefinition, conditions: Conditions) -> OutputDefinition:
    path: Path = ("outputs", output.name)
    if output.condition is not None and conditions.holds(output.condition, (*path, "condition")) is False:
        return replace(output, value=None, condition=None)
    return replace(output, value=chosen(output.value, conditions, (*path, "value")), condition=None)


class _Parameters:
    """The little that conditions may ask."""

    def __init__(self, version: str, parameters: Values) -> None:
        self.version = version
        self._parameters = parameters

    def parameter(self, name: str) -> Any:
        try:
            return self._parameters[name]
        except KeyError:
            raise UserParameterMissing(f"The Parameter ({clip(name)}) was not provided.") from None

    def resource_id(self, name: str) -> Any:
        raise _parameters_only(name)

    def attribute(self, name: str, attribute: str, path: tuple[Any, ...]) -> Any:
        raise _parameters_only(name)

    def file(self, name: str) -> str:
        raise _parameters_only(name)

    def facade(self, part: str) -> Any:
        raise _parameters_only(part)


def _parameters_only(name: str) -> StackValidationFailed:
    return StackValidationFailed(f"conditions see parameters only, not {name}")


def order(template: Template) -> tuple[str, ...]:
    """The names of all resources, each after everything that it requires."""
    return graph.sort(template.requirements)


def _build(document: dict[str, Any]) -> Template:
    version = _version(document)
    said = _in_words_of_today(document, version)
    parameters = {name: parse_schema(name, raw, version) for name, raw in optional_map(said, "parameters", ()).items()}
    return Template(
        version=version,
        description=scalar_text(said.get("description"), ("description",), "No description"),
        parameters=parameters,
        parameter_groups=parse_groups(said.get("parameter_groups"), parameters),
        resources={name: define(name, raw, version) for name, raw in optional_map(said, "resources", ()).items()},
        outputs={name: _output(name, raw, version) for name, raw in optional_map(said, "outputs", ()).items()},
        conditions=optional_map(said, "conditions", ()),
        document=document,
    )


def _version(document: dict[str, Any]) -> str:
    try:
        return version_of(document)
    except StokerError as error:
        raise Flaw(error.message, (VERSION_KEY,), type(error)) from None


def _in_words_of_today(document: dict[str, Any], version: str) -> dict[str, Any]:
    """The sections under HOT's names, without what only other syntaxes have."""
    if version in CFN_VERSIONS:
        return cfn.in_hot_words(document)
    _check_sections(document, version)
    if version >= FOREIGN_UNTIL:
        return document
    resources = optional_map(document, "resources", ())
    parts = {name: optional_map(document, name, ()) for name in ("resources", "outputs")}
    return {**document, **{name: rewritten(part, resources, None, version) for name, part in parts.items()}}


def _check_sections(document: dict[str, Any], version: str) -> None:
    for name in document:
        if name in _SECTIONS:
            continue
        if name != "conditions" or not has_conditions(version):
            raise Flaw(f"The template section is invalid: {name}", (name,), InvalidTemplateSection)


def _output(name: str, raw: Any, version: str) -> OutputDefinition:
    path: Path = ("outputs", name)
    data = map_at(raw, path)
    for key in data:
        if key not in ("value", "description") and (key != "condition" or not has_conditions(version)):
            raise flaw((*path, key), f"Invalid keyword(s) inside an output definition: {key}")
    if "value" not in data:
        raise flaw(path, 'Each output must contain a "value" key.')
    description = scalar_text(data.get("description"), (*path, "description"), "No description given")
    return OutputDefinition(name, data["value"], description, data.get("condition"))


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
