"""Parses and checks a whole template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from stoker.catalog import entry
from stoker.hot import syntaxes
from stoker.hot.calls import Names, check_calls, check_depends_on
from stoker.hot.conditions import CONDITIONAL, Conditions, apply_conditions, choose_branches, has_if
from stoker.hot.definition import Definition, define, sort_requirements
from stoker.hot.flaw import Flaw, Flaws, Path, dotted_path, flaw, map_at, optional_map, scalar_text
from stoker.hot.parameters import ParameterSchema, parse_groups, parse_schema
from stoker.hot.scope import UNKNOWN, Budget, Values
from stoker.hot.syntaxes import VERSION_KEY, has_conditions, version_of
from stoker.hot.text import MAX_TEMPLATE, read
from stoker.hot.words import clip, did_you_mean
from stoker.model.errors import (
    InvalidSchemaError,
    InvalidTemplateSection,
    StackValidationFailed,
    StokerError,
    UserParameterMissing,
)

#: Maximum size of all parameters' regular expressions in instructions; one pattern has from a few to ten thousand.
MAX_PATTERN_SIZES = 100_000
_SECTIONS = frozenset((VERSION_KEY, "description", "parameter_groups", "parameters", "resources", "outputs"))


class OutputDefinition(Struct, frozen=True):
    """An output of a template."""

    name: str
    value: Any
    description: str = "No description given"
    #: Unevaluated until the template's conditions are decided.
    condition: Any = None
    #: The reason why the output never has a value; a stack is created nevertheless.
    flaw: Flaw | None = None


class Template(Struct, frozen=True, dict=True):
    """A parsed template, fully checked except for the properties, which need the resource types."""

    version: str
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: tuple[Mapping[str, Any], ...]
    resources: Mapping[str, Definition]
    outputs: Mapping[str, OutputDefinition]
    #: Unevaluated.
    conditions: Mapping[str, Any] = field(default_factory=dict)
    #: The template as supplied, as JSON data.
    document: dict[str, Any] = field(default_factory=dict)
    #: Problems that do not prevent a stack.
    warnings: tuple[Flaw, ...] = ()
    #: The names of resources and parameters whose definition is wrong: a reference to them is no other mistake.
    invalid: frozenset[str] = frozenset()

    @cached_property
    def requirements(self) -> Mapping[str, frozenset[str]]:
        """For each resource, the names of the resources that it requires."""
        return {name: definition.requires for name, definition in self.resources.items()}


def parse(
    source: str | Mapping[str, Any], files: Mapping[str, str] | None = None, flaws: Flaws | None = None
) -> Template:
    """
    Parse and check a template from YAML or JSON text or decoded data; with ``files``, those that it names. Errors name
    the place, and the line of a text; with ``flaws``, they are added there, and the caller raises the error.
    """
    document = read(source, "Template", MAX_TEMPLATE)
    if entry.is_document(document):
        document = entry.to_template(document)
    collector = Flaws(source) if flaws is None else flaws
    if VERSION_KEY not in document and (syntax := syntaxes.declared_by(document)):
        collector.to_source_path = syntax.source_path
    with _collecting(collector):
        template = _check(_build(document, collector), files, collector)
    return _sorted_if_valid(template, collector, is_own=flaws is None)


def decide(
    template: Template,
    parameters: Values,
    files: Mapping[str, str] | None = None,
    budget: Budget | None = None,
    flaws: Flaws | None = None,
) -> Template:
    """
    Apply the template's conditions: resources whose condition is false are removed, such outputs are null, each ``if``
    is its branch; what depends on an UNKNOWN parameter stays. Spends from ``budget``; ``flaws`` as in ``parse``.

    Raises StackValidationFailed, or InvalidTemplateReference for a reference to a removed resource.
    """
    if not _is_conditional(template):
        return template
    collector = Flaws(template.document) if flaws is None else flaws
    with _collecting(collector):  # with an undecided condition, later checks are meaningless
        scope = _Parameters(template.version, parameters, budget or Budget(), template.invalid)
        Conditions(template.conditions, replace(scope, are_unknown=True)).check_all()
        conditions = Conditions(template.conditions, scope)
        decided = replace(
            template,
            resources=_active_resources(template, conditions),
            outputs={name: _decide_output(output, conditions) for name, output in template.outputs.items()},
            conditions={},
        )
        decided = _check(decided, files, collector)
    return _sorted_if_valid(decided, collector, is_own=flaws is None)


@contextmanager
def _collecting(collector: Flaws) -> Iterator[None]:
    """Raise what ends the block together with the flaws before it."""
    try:
        yield
    except Flaw as first:
        collector.add(first)
        collector.raise_any()
        raise


def _sorted_if_valid(template: Template, collector: Flaws, *, is_own: bool) -> Template:
    """Return the template; raise the collected flaws if ``is_own``, or an error for a cycle in a valid template."""
    if is_own:
        collector.raise_any()
    if not collector:
        sort_requirements(template.requirements)
    return template


def _is_conditional(template: Template) -> bool:
    if not has_conditions(template.version):
        return False
    return (
        bool(template.conditions)
        or any(
            definition.condition is not None or any(has_if(getattr(definition, part)) for part in CONDITIONAL)
            for definition in template.resources.values()
        )
        or any(definition.condition is not None or has_if(definition.value) for definition in template.outputs.values())
    )


def _active_resources(template: Template, conditions: Conditions) -> dict[str, Definition]:
    kept = {
        name: definition
        for name, definition in template.resources.items()
        if definition.condition is None
        or conditions.holds(definition.condition, ("resources", name, "condition")) is not False
    }
    gone = template.resources.keys() - kept.keys()
    return {
        name: replace(
            apply_conditions(definition, conditions),
            depends_on=tuple(need for need in definition.depends_on if need not in gone),
        )
        for name, definition in kept.items()
    }


def _decide_output(output: OutputDefinition, conditions: Conditions) -> OutputDefinition:
    path: Path = ("outputs", output.name)
    if output.condition is not None and conditions.holds(output.condition, (*path, "condition")) is False:
        return replace(output, value=None, condition=None, flaw=None)
    if output.flaw is not None:
        return output
    return replace(output, value=choose_branches(output.value, conditions, (*path, "value")), condition=None)


class _Parameters(Struct):
    """The scope of conditions: parameters only."""

    version: str
    parameters: Values
    budget: Budget
    #: The names of parameters whose values are UNKNOWN, because their definition is wrong.
    invalid: frozenset[str]
    #: Whether all values are UNKNOWN.
    are_unknown: bool = False

    def parameter(self, name: str) -> Any:
        if name in self.invalid:
            return UNKNOWN
        try:
            value = self.parameters[name]
        except KeyError:
            raise UserParameterMissing(f"The Parameter ({clip(name)}) was not provided.") from None
        return UNKNOWN if self.are_unknown else value

    def _refuse(self, name: str, *_: Any) -> Any:
        raise StackValidationFailed(f"conditions see parameters only, not {name}")

    resource_id = attribute = file = facade = _refuse


def order(template: Template) -> tuple[str, ...]:
    """The names of all resources, each after everything that it requires."""
    return sort_requirements(template.requirements)


def _build(document: dict[str, Any], flaws: Flaws) -> Template:
    version = _version(document)
    hot = _in_words_of_today(document, version, flaws)
    sections = {name: _section(hot, name, flaws) for name in ("parameters", "resources", "outputs", "conditions")}
    resources: dict[str, Definition] = {}
    outputs: dict[str, OutputDefinition] = {}
    warnings: list[Flaw] = []
    parameters = _parameters(sections["parameters"], version, flaws)
    groups: tuple[Mapping[str, Any], ...] = ()
    with flaws.collect():
        groups = parse_groups(hot.get("parameter_groups"), sections["parameters"])
    for name, raw in sections["resources"].items():
        with flaws.collect():
            resources[name] = define(name, raw, version)
    for name, raw in sections["outputs"].items():
        with flaws.collect():
            outputs[name] = _output(name, raw, version, warnings)
    invalid = (sections["resources"].keys() - resources) | (sections["parameters"].keys() - parameters)
    return Template(
        version=version,
        description=scalar_text(hot.get("description"), ("description",), "No description"),
        parameters=parameters,
        parameter_groups=groups,
        resources=resources,
        outputs=outputs,
        conditions=sections["conditions"],
        document=document,
        warnings=tuple(warnings),
        invalid=frozenset(invalid),
    )


def _section(sections: dict[str, Any], name: str, flaws: Flaws) -> dict[str, Any]:
    with flaws.collect():
        return optional_map(sections, name, ())
    return {}


def _parameters(section: Mapping[str, Any], version: str, flaws: Flaws) -> dict[str, ParameterSchema]:
    parameters: dict[str, ParameterSchema] = {}
    size = 0
    for name, raw in section.items():
        with flaws.collect():
            parameters[name] = parse_schema(name, raw, version)
            size += parameters[name].pattern_size
        if size > MAX_PATTERN_SIZES:
            sentence = "the regular expressions of all parameters together are too large: repeat less in them"
            raise flaw(("parameters", name), sentence, InvalidSchemaError)
    return parameters


def _version(document: dict[str, Any]) -> str:
    try:
        return version_of(document)
    except StokerError as error:
        raise Flaw(error.message, (VERSION_KEY,), type(error)) from None


def _in_words_of_today(document: dict[str, Any], version: str, flaws: Flaws) -> dict[str, Any]:
    if syntax := syntaxes.of_version(version):
        return syntax.translate(document)
    _check_sections(document, version, flaws)
    for other in syntaxes.load():
        if version < other.replaces_until:
            resources = optional_map(document, "resources", ())
            parts = {name: optional_map(document, name, ()) for name in ("resources", "outputs")}
            calls = {name: other.replace_in_hot(part, resources, version) for name, part in parts.items()}
            document = {**document, **calls}
    return document


def _check_sections(document: dict[str, Any], version: str, flaws: Flaws) -> None:
    allowed = _SECTIONS | {"conditions"} if has_conditions(version) else _SECTIONS
    for name in document:
        if name not in allowed:
            sentence = f"The template section is invalid: {name}{did_you_mean(name, sorted(allowed))}"
            flaws.add(Flaw(sentence, (name,), InvalidTemplateSection))


def _output(name: str, raw: Any, version: str, warnings: list[Flaw]) -> OutputDefinition:
    path: Path = ("outputs", name)
    data = map_at(raw, path)
    for key in data:
        if key not in ("value", "description") and (key != "condition" or not has_conditions(version)):
            warnings.append(flaw((*path, key), f"Invalid keyword(s) inside an output definition: {key}"))
    if "value" not in data:
        sentence = "Each output definition must contain a value key."
        raise Flaw(sentence, path, error="Output validation error", place=dotted_path(path))
    description = scalar_text(data.get("description"), (*path, "description"), "No description given")
    return OutputDefinition(name, data["value"], description, data.get("condition"))


def _check(template: Template, files: Mapping[str, str] | None, flaws: Flaws) -> Template:
    """Check all calls. Return the template with the flaws of its outputs."""
    resources, parameters = template.resources.keys() | template.invalid, template.parameters.keys() | template.invalid
    for name in template.resources:
        if name in parameters:
            flaws.add(flaw(("resources", name), "a parameter has the same name"))
    names = Names(template.version, resources, parameters, files)
    for definition in template.resources.values():
        path: Path = ("resources", definition.name)
        check_depends_on(definition.depends_on, path, names, flaws)
        for part in CONDITIONAL:
            check_calls(getattr(definition, part), (*path, part), names, flaws)
    # Without hints, because the number of invalid outputs is unlimited.
    names = replace(names, hints=False)
    outputs = {name: _check_output(output, names, flaws) for name, output in template.outputs.items()}
    return replace(template, outputs=outputs)


def _check_output(output: OutputDefinition, names: Names, flaws: Flaws) -> OutputDefinition:
    """Check an output. As in Heat, a reference to an unknown parameter is its own error: the stack is created."""
    if output.flaw is not None:
        return output
    own = Flaws()
    check_calls(output.value, ("outputs", output.name, "value"), names, own)
    only_later = [problem for problem in own if problem.kind is UserParameterMissing]
    for problem in own:
        if problem not in only_later:
            flaws.add(problem)
    return replace(output, flaw=next(iter(only_later), None))
