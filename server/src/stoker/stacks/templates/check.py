"""Checks of templates before any resource exists: types, properties, references, nested and remote templates."""

from __future__ import annotations

from collections.abc import Mapping
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
from stoker.hot.flaw import Path, heat_path
from stoker.hot.syntaxes import VERSION_KEY
from stoker.hot.text import MAX_TEMPLATE, read
from stoker.hot.words import clip
from stoker.model.errors import RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.resources.base import Properties, ResourceType
from stoker.resources.properties import PropertyError
from stoker.resources.roles import (
    HasNestedStack,
    Members,
    RunsRemoteStack,
    escape,
    is_template_name,
)
from stoker.stacks.engine import Engine
from stoker.stacks.prechecks import list_denied_by_template
from stoker.stacks.templates.lookup import TemplateTypes
from stoker.stacks.templates.outline import Outline, OutlinedResource
from stoker.stacks.templates.report import FlawReport, PropertyChecker
from stoker.stacks.templates.scope import IncorrectAttribute, StaticScope

#: Maximum number of resources in a preview, including all members of groups.
MOST_OUTLINED = 10_000
#: Heat's name for the template that a group generates.
_GROUPS_TEMPLATE = "nested_stack"
_NEWEST = "2021-04-16"


class Checker:
    """Checks all templates of one request."""

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
        ``flaws`` has the errors of the request that are known already. ``every_member``: check all members of groups
        instead of one of each. ``remote_depth``: number of stacks of OS::Heat::Stack around the template.

        ``constraints``: the cloud's checks of names, outside of transactions only.
        """
        self._constraints = constraints
        self._engine = engine
        self._files = files
        self._budget = budget
        self._report = FlawReport(flaws)
        self._properties = PropertyChecker(engine, self._report, constraints)
        self._types = TemplateTypes(engine, files, self._report)
        self._every_member = every_member
        self._remote_depth = remote_depth
        #: Number of checked resources, including nested templates. A group counts as one of its members.
        self._count = 0

    def check(self, template: Template, parameters: Values, environment: Environment) -> Outline:
        """Check a template and all inside it. Raises one error for all that are wrong, the known ones included."""
        for schema in template.parameters.values():
            path: Path = ("parameters", schema.name)
            if problem := self._custom_problem(schema, parameters[schema.name]):
                self._report.add(Flaw(clip(f"Parameter '{schema.name}' is invalid: {problem}"), path))
        outline = self._check(template, parameters, environment, depth=1)
        with self._report.collect((), named_already=True):
            for flaw in list_denied_by_template(outline):
                self._report.add(flaw)
        self._types.report_unknown()
        self._report.flaws.raise_any()
        return outline

    def warnings(self) -> list[str]:
        """Return the warnings: unusual parts of the templates that are no errors."""
        return [*self._report.warnings(), *(self._constraints.warnings() if self._constraints else ())]

    def _custom_problem(self, schema: ParameterSchema, value: Any) -> str | None:
        if self._constraints is None or hot.has_unknown(value):
            return None
        return schema.custom_problem(value, self._constraints.find_problem)

    def _check(
        self, template: Template, parameters: Values, environment: Environment, depth: int, file: str = ""
    ) -> Outline:
        """Check a template at any depth. ``parameters`` may be UNKNOWN in nested templates."""
        deepest = self._engine.limits.nested_depth
        if depth > deepest:
            raise RequestLimitExceeded(f"Recursion depth exceeds {deepest}.")
        template = hot.decide(template, parameters, self._files, self._budget, self._report.flaws)
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
        resources = {}
        for name, resource in template.resources.items():
            final = replace(
                self._with_settings(resource, scope),
                type=types[name].name,
                mapped_from=resource.type if resource.type != types[name].name else None,
                hooks=environment.registry.controls(name, "hooks"),
                restricted_actions=environment.registry.controls(name, "restricted_actions"),
            )
            definition = hot.inline_files(final, self._files)
            values, metadata = self._properties.check(types[name], definition, scope, flawed)
            if isinstance(types[name], RunsRemoteStack):
                with self._report.collect(("resources", name, "properties"), named_already=True):
                    self._check_remote(values, environment)
            inside = self._inside(types[name], name, values, environment, depth)
            resources[name] = OutlinedResource(
                type=types[name], definition=definition, properties=values, metadata=metadata, inside=inside
            )
        for name, others in self._engine.env.provider.imply_dependencies(resources).items():
            definition = resources[name].definition
            depends_on = (*definition.depends_on, *sorted(others))
            resources[name] = replace(resources[name], definition=replace(definition, depends_on=depends_on))
        outputs, errors = self._outputs(template, scope)
        return Outline(
            template=template,
            file=file,
            resources=resources,
            outputs=outputs,
            output_errors=errors,
        )

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

    def _outputs(self, template: Template, scope: StaticScope) -> tuple[dict[str, Any], dict[str, str]]:
        """Return values and errors of the outputs. Errors of values are warnings only: the stack is created."""
        for flaw in template.warnings:
            self._report.warn(flaw)
        values: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for name, output in template.outputs.items():
            path: Path = ("outputs", name, "value")
            values[name], wrong = (None, output.flaw) if output.flaw else self._output(output.value, path, scope)
            if wrong is not None:
                self._report.warn(Flaw(f"outputs.{name}: {wrong.sentence}", wrong.path))
                errors[name] = wrong.sentence
        return values, errors

    def _output(self, source: Any, path: Path, scope: StaticScope) -> tuple[Any, Flaw | None]:
        """Return the value of an output, or the error that it would have in the stack."""
        try:
            return hot.evaluate(source, scope), None
        except RequestLimitExceeded as error:
            raise self._report.with_place(error, path) from None
        except IncorrectAttribute as error:
            self._report.add(Flaw(error.message, path, place=heat_path(path)))
        except StokerError as error:
            return None, Flaw(error.message, path)
        return None, None

    def _check_remote(self, properties: Properties, environment: Environment) -> None:
        """
        Check the properties of an OS::Heat::Stack. Raises StackValidationFailed in Heat's wording. A template for
        another Heat, which may have other types and functions, is only parsed.
        """
        deepest, heats = self._engine.limits.nested_depth, self._engine.env.remote_heats
        if self._remote_depth >= deepest:
            raise RequestLimitExceeded(f"Recursion depth of OS::Heat::Stack exceeds {deepest}.")
        context, text = properties["context"], properties["template"]
        region = context.get("region_name") if isinstance(context, Mapping) else context
        if region is UNKNOWN:
            return
        if (problem := heats.problem(region)) is not None:
            raise StackValidationFailed(
                f'Cannot establish connection to Heat endpoint at region "{region}" due to "{problem}".'
                f" {heats.remedy()}"
            )
        if text is UNKNOWN:
            return
        try:
            if heats.is_local(region):
                self._check_separately(text, properties["parameters"], replace(environment, parameters={}))
            else:
                _read(text)
        except RequestLimitExceeded:
            raise
        except StokerError as error:
            raise StackValidationFailed(
                f'Failed validating stack template using Heat endpoint at region "{region}"'
                f' due to "ERROR: {clip(error.message)}"'
            ) from None

    def _check_separately(self, text: str, parameters: Any, environment: Environment) -> None:
        """Check the template of another stack, with errors of its own. ``parameters`` may be UNKNOWN."""
        flaws = Flaws(text)
        template = hot.parse(text, self._files, flaws)
        items = parameters.items() if isinstance(parameters, Mapping) else ()
        supplied = {name: UNKNOWN if hot.has_unknown(value) else value for name, value in items}
        bound = hot.bind(template, environment, supplied=supplied, flaws=flaws, may_miss=parameters is UNKNOWN)
        checker = Checker(self._engine, self._files, self._budget, flaws, remote_depth=self._remote_depth + 1)
        checker.check(template, bound, environment)

    def _inside(
        self, kind: ResourceType, name: str, properties: Properties, environment: Environment, depth: int
    ) -> Outline | None:
        """Check the resources inside a resource: those of its template, or a group's members."""
        below = environment.below(name)
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
        members = kind.members(properties, every=self._every_member)
        return self._deeper(name, _GROUPS_TEMPLATE, _group_template(members), {}, below, depth) if members else None

    def _inside_file(self, name: str, file: str, properties: Properties, below: Environment, depth: int) -> Outline:
        template = self._types.parse(file)
        return self._deeper(name, file, template, self._bind(name, template, properties, below), below, depth)

    def _deeper(
        self, name: str, file: str, template: Template, parameters: Values, environment: Environment, depth: int
    ) -> Outline:
        with self._report.nest(name, file):
            return self._check(template, parameters, environment, depth + 1, file)
        return Outline(template=template, file=file)

    def _bind(self, name: str, template: Template, properties: Properties, environment: Environment) -> dict[str, Any]:
        """Return the parameters of a nested template, as far as known before the stack exists."""
        values: dict[str, Any] = dict.fromkeys(hot.pseudo_parameters(template.version), UNKNOWN)
        for schema in template.parameters.values():
            value = schema.choose(properties.get(schema.name), environment.parameter_defaults.get(schema.name))
            values[schema.name] = UNKNOWN
            path: Path = ("resources", name, "properties", schema.name)
            try:
                values[schema.name] = value if hot.has_unknown(value) else schema.accept(value)
                if problem := self._custom_problem(schema, values[schema.name]):
                    raise ValueError(problem)
            except ValueError as error:
                self._report.add_property_error(PropertyError(path[-1:], str(error)), path[:-1])
        return values


def _read(text: str) -> None:
    document = read(text, "Template", MAX_TEMPLATE)
    if VERSION_KEY not in document and syntaxes.declared_by(document) is None:
        raise StackValidationFailed("Template format version not found.")


def _group_template(members: Members) -> Template:
    return Template(
        version=_NEWEST,
        description="No description",
        parameters={},
        parameter_groups=(),
        resources={name: Definition.from_json({"name": name, **member}) for name, member in escape(members).items()},
        outputs={},
    )
