"""Checks of templates before any resource exists: types, properties, references, nested and remote templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker import hot
from stoker.backends.provider import Constraints
from stoker.hot import (
    UNKNOWN,
    Budget,
    Definition,
    Environment,
    Flaw,
    Flaws,
    ParameterSchema,
    Template,
    Values,
    syntaxes,
)
from stoker.hot.bounds import MAX_TEMPLATE
from stoker.hot.paths import Path, heat_path
from stoker.hot.text import read
from stoker.hot.versions import VERSION_KEY
from stoker.hot.words import clip
from stoker.model.errors import InvalidTemplateVersion, RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.resources import implicit_dependencies
from stoker.resources.base import Properties, ResourceType
from stoker.resources.implicit_dependencies import PlannedResource
from stoker.resources.nested import HasNestedStack, RunsRemoteStack, is_template_name
from stoker.stacks.engine import Engine
from stoker.stacks.prechecks import InnerOutline, OutlinedResource, list_denied_by_template
from stoker.stacks.templates.lookup import TemplateTypes
from stoker.stacks.templates.report import FlawReport, PropertyChecker
from stoker.stacks.templates.scope import IncorrectAttribute, StaticScope

__all__ = ["Around", "check"]


@dataclass(frozen=True, slots=True)
class Around:
    """The template with the OS::Heat::Stack, whose files and environment the remote stack gets."""

    engine: Engine
    files: Mapping[str, str]
    environment: Environment
    budget: Budget
    remote_depth: int


def check(around: Around, properties: Properties) -> None:
    """
    Check the properties of an OS::Heat::Stack.

    A template for another Heat is only parsed, because that Heat may have more types and functions. Raises
    StackValidationFailed in Heat's wording.
    """
    context = properties["context"]
    region = context.get("region_name") if isinstance(context, Mapping) else context
    if region is UNKNOWN:
        return
    engine = around.engine
    if (problem := engine.env.remote_heats.problem(region)) is not None:
        raise StackValidationFailed(
            f'Cannot establish connection to Heat endpoint at region "{region}" due to "{problem}".'
            f" {engine.env.remote_heats.remedy()}"
        )
    text = properties["template"]
    if text is UNKNOWN:
        return
    try:
        if engine.env.remote_heats.is_local(region):
            _check(around, text, properties["parameters"])
        else:
            _read(text)
    except RequestLimitExceeded:
        raise
    except StokerError as error:
        raise StackValidationFailed(
            f'Failed validating stack template using Heat endpoint at region "{region}"'
            f' due to "ERROR: {clip(error.message)}"'
        ) from None


def _read(text: str) -> None:
    document = read(text, "Template", MAX_TEMPLATE)
    if VERSION_KEY not in document and syntaxes.declared_by(document) is None:
        raise StackValidationFailed("Template format version not found.")


def _check(around: Around, text: str, parameters: Any) -> None:
    flaws = Flaws(text)
    environment = replace(around.environment, parameters={})
    template = hot.parse(text, around.files, flaws)
    items = parameters.items() if isinstance(parameters, Mapping) else ()
    supplied = {name: UNKNOWN if hot.weigh(value)[1] else value for name, value in items}
    is_unknown = parameters is UNKNOWN
    bound = hot.bind(template, environment, supplied=supplied, pseudo={}, flaws=flaws, may_miss=is_unknown)
    values = {**bound.values, **dict.fromkeys(hot.pseudo_parameters(template.version), UNKNOWN)}
    decided = hot.decide(template, values, around.files, around.budget, flaws)
    checker = Checker(around.engine, around.files, around.budget, flaws, remote_depth=around.remote_depth + 1)
    checker.check(decided, values, environment)
    flaws.raise_any()


#: Maximum number of resources in a preview, including all members of groups.
MOST_OUTLINED = 10_000
#: Heat's name for the template that a group generates.
_GROUPS_TEMPLATE = "nested_stack"
_NEWEST = "2021-04-16"


class Checker:
    """Checks all templates of one request. Errors are added to ``flaws``; the caller raises them."""

    def __init__(
        self,
        engine: Engine,
        files: Mapping[str, str],
        budget: Budget,
        flaws: Flaws,
        *,
        every_member: bool = False,
        remote_depth: int = 0,
        constraints: Constraints | None = None,
    ) -> None:
        """
        ``every_member``: check all members of groups instead of one of each. ``remote_depth``: number of stacks of
        OS::Heat::Stack around the template.

        ``constraints``: the cloud's checks of names, outside of transactions only.
        """
        self._constraints = constraints
        self._engine = engine
        self._files = files
        self._budget = budget
        self._report = FlawReport(flaws)
        self._properties = PropertyChecker(self._report, constraints)
        self._types = TemplateTypes(engine.types, files, self._report, has_provider=engine.env.has_provider)
        self._every_member = every_member
        self._remote_depth = remote_depth
        #: The checked resources of the outermost template.
        self.outline: Mapping[str, OutlinedResource] = {}
        #: Values of the outermost template's outputs.
        self.outputs: dict[str, Any] = {}
        #: Errors of outputs of the outermost template that will never have a value.
        self.output_errors: dict[str, str] = {}
        #: Number of checked resources, including nested templates. A group counts as one of its members.
        self._count = 0

    def check(self, template: Template, parameters: Values, environment: Environment) -> dict[str, dict[str, Any]]:
        """
        Check a template.

        Returns the definitions by resource name, in JSON form: with final types and the contents of files.
        """
        for schema in template.parameters.values():
            path: Path = ("parameters", schema.name)
            if problem := self._custom_problem(schema, parameters[schema.name]):
                self._report.add(Flaw(clip(f"Parameter '{schema.name}' is invalid: {problem}"), path))
        self.outline = self._check(template, parameters, environment, depth=1)
        with self._report.collect((), named_already=True):
            for flaw in list_denied_by_template(self.outline):
                self._report.add(flaw)
        self._types.report_unknown()
        return {name: resource.definition.to_json() for name, resource in self.outline.items()}

    def warnings(self) -> list[str]:
        """Return the warnings: unusual parts of the templates that are no errors."""
        return [*self._report.warnings(), *(self._constraints.warnings() if self._constraints else ())]

    def _custom_problem(self, schema: ParameterSchema, value: Any) -> str | None:
        if self._constraints is None or _is_unknown(value):
            return None
        return schema.custom_problem(value, self._constraints.find_problem)

    def _check(
        self, template: Template, parameters: Values, environment: Environment, depth: int
    ) -> dict[str, OutlinedResource]:
        """Check a template at any depth. ``parameters`` may be UNKNOWN in nested templates."""
        deepest = self._engine.limits.nested_depth
        if depth > deepest:
            raise RequestLimitExceeded(f"Recursion depth exceeds {deepest}.")
        self._count += len(template.resources)
        limit = self._engine.limits.resources_per_stack
        if self._every_member and self._count > MOST_OUTLINED:
            raise RequestLimitExceeded(f"a preview shows at most {MOST_OUTLINED} resources, this stack has more")
        if 0 <= limit < self._count:
            raise RequestLimitExceeded(f"a stack may have {limit} resources with all inside of it, this one has more")
        types = {name: self._types.find(environment, resource) for name, resource in template.resources.items()}
        scope = StaticScope(template.version, parameters, self._files, types, self._budget)
        #: Paths with errors from the parser, so that they are not reported twice.
        flawed = {flaw.path[:4] for flaw in self._report.flaws}
        outline = {}
        for name, resource in template.resources.items():
            final = replace(
                self._with_settings(resource, scope),
                type=types[name].name,
                mapped_from=resource.type if resource.type != types[name].name else None,
                hooks=environment.registry.hooks(name),
                restricted_actions=environment.registry.restricted_actions(name),
            )
            definition = hot.inline_files(final, self._files)
            values, metadata = self._properties.check(types[name], definition, scope, flawed)
            if isinstance(types[name], RunsRemoteStack):
                self._check_remote(name, values, environment)
            inside = self._inside(types[name], name, values, environment, depth)
            outline[name] = OutlinedResource(
                type=types[name], definition=definition, properties=values, metadata=metadata, inside=inside
            )
        outline = _with_implicit_dependencies(outline)
        self._outputs(template, scope, depth)
        return outline

    def _with_settings(self, definition: Definition, scope: StaticScope) -> Definition:
        """Return the definition with the values of settings that depend on parameters, or None for unknown values."""
        for name, call in hot.settings_of(definition).items():
            with self._report.collect(("resources", definition.name, name)):
                value = hot.evaluate(call, scope)
                try:
                    definition = hot.with_setting(definition, name, None if value is UNKNOWN else value, scope.version)
                except Flaw as problem:
                    self._report.add(problem)
        return definition

    def _outputs(self, template: Template, scope: StaticScope, depth: int) -> None:
        """Check the outputs. An error that depends on values is only a warning: the stack is created nevertheless."""
        for flaw in template.warnings:
            self._report.warn(flaw)
        for name, output in template.outputs.items():
            path: Path = ("outputs", name, "value")
            value, wrong = (None, output.flaw) if output.flaw else self._output(output.value, path, scope)
            if wrong is not None:
                self._report.warn(Flaw(f"outputs.{name}: {wrong.sentence}", wrong.path))
            if depth == 1:
                self.outputs[name] = value
                if wrong is not None:
                    self.output_errors[name] = wrong.sentence

    def _output(self, source: Any, path: Path, scope: StaticScope) -> tuple[Any, Flaw | None]:
        """Return the value of an output, or the error that it would have in the stack."""
        try:
            return hot.evaluate(source, scope), None
        except RequestLimitExceeded as error:
            raise self._report.with_place(error, path) from None
        except InvalidTemplateVersion as error:
            self._report.add(Flaw(error.message, path, type(error), place=heat_path(path)))
        except IncorrectAttribute as error:
            self._report.add(Flaw(error.with_hint(), path, place=heat_path(path)))
        except StokerError as error:
            return None, Flaw(error.message, path)
        return None, None

    def _check_remote(self, name: str, properties: Properties, environment: Environment) -> None:
        """Check the template of an OS::Heat::Stack."""
        deepest = self._engine.limits.nested_depth
        if self._remote_depth >= deepest:
            raise RequestLimitExceeded(f"Recursion depth of OS::Heat::Stack exceeds {deepest}.")
        around = Around(self._engine, self._files, environment, self._budget, self._remote_depth)
        with self._report.collect(("resources", name, "properties"), named_already=True):
            check(around, properties)

    def _inside(
        self, kind: ResourceType, name: str, properties: Properties, environment: Environment, depth: int
    ) -> InnerOutline | None:
        """Check the resources inside a resource: those of its template, or a group's members."""
        below = replace(environment, parameters={}, registry=environment.registry.below(name))
        if is_template_name(kind.name):
            return self._inside_file(name, kind.name, properties, below, depth)
        if not isinstance(kind, HasNestedStack):
            return None
        if named := kind.template_file(properties):
            place: Path = ("resources", name, "properties")
            with self._report.collect(place):
                values = self._types.check_parameters(named, below, place)
                return self._inside_file(name, named[1], values, below, depth)
            return None
        members: dict[str, OutlinedResource] = {}
        list_members = kind.every_member if self._every_member else kind.members
        for member, type_name, member_properties in list_members(properties):
            definition = Definition(name=member, type=type_name, properties=hot.literal(member_properties))
            members |= self._deeper(name, _GROUPS_TEMPLATE, _frozen(definition), {}, below, depth)
        return InnerOutline(file=_GROUPS_TEMPLATE, resources=members) if members else None

    def _inside_file(
        self, name: str, file: str, properties: Properties, below: Environment, depth: int
    ) -> InnerOutline:
        template = self._types.parse(file)
        bound = self._bind(name, template, properties, below)
        inner = self._deeper(name, file, template, bound, below, depth)
        return InnerOutline(file=file, resources=inner, template=template)

    def _deeper(
        self, name: str, file: str, template: Template, parameters: Values, environment: Environment, depth: int
    ) -> dict[str, OutlinedResource]:
        with self._report.nest(name, file) as flaws:
            counting = hot.decide(template, parameters, self._files, self._budget, flaws)
            return self._check(counting, parameters, environment, depth + 1)
        return {}

    def _bind(self, name: str, template: Template, properties: Properties, environment: Environment) -> dict[str, Any]:
        """Return the parameters of a nested template, as far as known before the stack exists."""
        values: dict[str, Any] = dict.fromkeys(hot.pseudo_parameters(template.version), UNKNOWN)
        for schema in template.parameters.values():
            value = properties.get(schema.name)
            if value is None:
                value = environment.parameter_defaults.get(schema.name)
            if value is None:
                value = schema.default
            values[schema.name] = UNKNOWN
            path: Path = ("resources", name, "properties", schema.name)
            try:
                values[schema.name] = value if _is_unknown(value) else schema.accept(value)
                if problem := self._custom_problem(schema, values[schema.name]):
                    raise ValueError(problem)
            except ValueError as error:
                self._report.add(Flaw(clip(str(error)), path, error="Property error", place=heat_path(path)))
        return values


def _with_implicit_dependencies(outline: dict[str, OutlinedResource]) -> dict[str, OutlinedResource]:
    """Add the dependencies that no function states."""
    planned = {
        name: PlannedResource(resource.type.name, resource.definition.properties, resource.properties)
        for name, resource in outline.items()
        if resource.type.needs_provider
    }
    rules = {resource.type.name: resource.type.implied for resource in outline.values()}
    implied = implicit_dependencies.find(planned, rules) if len(planned) > 1 else {}
    if not implied:
        return outline
    stated = {name: resource.definition.requires for name, resource in outline.items()}
    changed = dict(outline)
    for name, others in implicit_dependencies.without_cycles(stated, implied).items():
        definition = outline[name].definition
        depends_on = (*definition.depends_on, *sorted(others))
        changed[name] = replace(outline[name], definition=replace(definition, depends_on=depends_on))
    return changed


def _is_unknown(value: Any) -> bool:
    return hot.weigh(value)[1]


def _frozen(definition: Definition) -> Template:
    return Template(
        version=_NEWEST,
        description="",
        parameters={},
        parameter_groups=(),
        resources={definition.name: definition},
        outputs={},
    )
