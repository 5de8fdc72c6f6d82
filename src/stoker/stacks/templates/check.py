"""Checks of a template before any resource exists: types, properties, references, and nested templates at any depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Budget, Definition, Environment, Flaw, Flaws, Template, Values
from stoker.hot.paths import Path, heat_path
from stoker.hot.words import clip, kind_of
from stoker.model.errors import (
    InvalidTemplateVersion,
    RequestLimitExceeded,
    StackValidationFailed,
    StokerError,
)
from stoker.resources import properties as schemas
from stoker.resources.base import Properties, ResourceType
from stoker.resources.nested_base import TEMPLATE, TEMPLATE_ENDINGS
from stoker.resources.properties import Property, PropertyError
from stoker.stacks.engine import Engine
from stoker.stacks.policy_precheck import STANDS_FOR, PlannedDeployment, plan_deployments
from stoker.stacks.templates import remote_templates
from stoker.stacks.templates.outline import InnerOutline, OutlinedResource
from stoker.stacks.templates.scope import IncorrectAttribute, StaticScope
from stoker.stacks.templates.unknown_types import UnknownTypes

#: Maximum depth of nested stacks, including the outermost.
MAX_DEPTH = 5
#: Maximum number of resources in a preview, including all members of groups.
MOST_OUTLINED = 10_000
#: Maximum number of warnings, because they are sent in a response header.
MOST_WARNINGS = 20
#: Heat's name for the template that a group generates.
_GROUPS_TEMPLATE = "nested_stack"
_NEWEST = "2021-04-16"

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
    ) -> None:
        """``every_member``: check all members of groups instead of one of each."""
        self._engine = engine
        self._files = files
        self._budget = budget
        self._top_flaws = self._flaws = flaws
        self._every_member = every_member
        #: The checked resources of the outermost template.
        self.outline: Mapping[str, OutlinedResource] = {}
        #: Values of the outermost template's outputs.
        self.outputs: dict[str, Any] = {}
        #: Errors of outputs of the outermost template that will never have a value.
        self.output_errors: dict[str, str] = {}
        self._warnings: list[Flaw] = []
        #: Errors of unreadable template files, by file name.
        self._unreadable: dict[str, StokerError] = {}
        self._unknown_types = UnknownTypes(engine.types)
        #: Number of checked resources, including nested templates. A group counts as one of its members.
        self._count = 0
        #: Planned deployments to servers with known ids.
        self.planned_deployments: list[PlannedDeployment] = []
        #: True if a resource may come to represent an enrolled server.
        self.stands_for = False
        #: Place of the template being checked, and its resource in the outermost template.
        self._within: list[str] = []
        self._top: str | None = None

    def check(self, template: Template, parameters: Values, environment: Environment) -> dict[str, dict[str, Any]]:
        """
        Check a template.

        Returns the definitions by resource name, in JSON form: with final types and the contents of files.
        """
        self.outline = self._check(template, parameters, environment, depth=1)
        for flaw in self._unknown_types.flaws():
            self._flaws.add(flaw)
        return {name: resource.definition.to_json() for name, resource in self.outline.items()}

    def warnings(self) -> list[str]:
        """Return the warnings: unusual parts of the templates that are no errors."""
        return self._top_flaws.describe(self._warnings)

    def _check(
        self, template: Template, parameters: Values, environment: Environment, depth: int
    ) -> dict[str, OutlinedResource]:
        """Check a template at any depth. ``parameters`` may be UNKNOWN in nested templates."""
        if depth > MAX_DEPTH:
            raise RequestLimitExceeded(f"Recursion depth exceeds {MAX_DEPTH}.")
        self._count += len(template.resources)
        limit = self._engine.limits.resources_per_stack
        if self._every_member and self._count > MOST_OUTLINED:
            raise RequestLimitExceeded(f"a preview shows at most {MOST_OUTLINED} resources, this stack has more")
        if 0 <= limit < self._count:
            raise RequestLimitExceeded(f"a stack may have {limit} resources with all inside of it, this one has more")
        types = {name: self._type(environment, resource) for name, resource in template.resources.items()}
        scope = StaticScope(template.version, parameters, self._files, types, self._budget)
        #: Paths with errors from the parser, so that they are not reported twice.
        flawed = {flaw.path[:4] for flaw in self._flaws}
        outline = {}
        for name, resource in template.resources.items():
            if depth == 1:
                self._top = name
            final = replace(
                resource,
                type=types[name].name,
                mapped_from=resource.type if resource.type != types[name].name else None,
                hooks=environment.registry.hooks(name),
                restricted_actions=environment.registry.restricted_actions(name),
            )
            definition = hot.inline_files(final, self._files)
            values, metadata = self._properties(types[name], definition, scope, flawed)
            inside = self._inside(types[name], name, values, environment, depth)
            outline[name] = OutlinedResource(
                type=types[name], definition=definition, properties=values, metadata=metadata, inside=inside
            )
        self.stands_for |= any(resource.type.name == STANDS_FOR for resource in outline.values())
        with self._collect((), named_already=True):
            # Outer before inner, so that an error is reported at the group rather than at its sample member.
            self.planned_deployments[:0] = plan_deployments(
                "".join(self._within), self._top if depth > 1 else None, outline
            )
        self._outputs(template, scope, depth)
        return outline

    def _outputs(self, template: Template, scope: StaticScope, depth: int) -> None:
        """Check the outputs. An error in an output is only a warning: the stack is created nevertheless."""
        for flaw in template.warnings:
            self._warn(flaw)
        for name, output in template.outputs.items():
            path: Path = ("outputs", name, "value")
            wrong, value = output.flaw, None
            if wrong is None:
                try:
                    value = hot.evaluate(output.value, scope)
                except RequestLimitExceeded as error:
                    raise self._with_place(error, path) from None
                except InvalidTemplateVersion as error:
                    self._flaws.add(Flaw(error.message, path, type(error), place=heat_path(path)))
                except StokerError as error:
                    wrong = Flaw(error.message, path)
            if wrong is not None:
                self._warn(Flaw(f"outputs.{name}: {wrong.sentence}", wrong.path))
            if depth == 1:
                self.outputs[name] = value
                if wrong is not None:
                    self.output_errors[name] = wrong.sentence

    def _warn(self, flaw: Flaw) -> None:
        if len(self._warnings) < MOST_WARNINGS:
            place = "".join(self._within).removesuffix(".")
            self._warnings.append(flaw.within(place, ()) if place else flaw)

    @contextmanager
    def _collect(self, path: Path, *, named_already: bool = False) -> Iterator[None]:
        """
        Add an error raised inside to the flaws and continue. A passed limit ends the whole check.

        ``named_already``: the message already names the place.
        """
        try:
            yield
        except RequestLimitExceeded as error:
            raise (error if named_already else self._with_place(error, path)) from None
        except StokerError as error:
            sentence = error.message if named_already else f"{heat_path(path)}: {error.message}"
            self._flaws.add(Flaw(sentence, path, type(error)))

    def _with_place(self, error: RequestLimitExceeded, path: Path) -> RequestLimitExceeded:
        """Return the limit's error with the place of the value that exceeded it."""
        return RequestLimitExceeded(f"{''.join(self._within)}{heat_path(path)}: {error.message}")

    def _type(self, environment: Environment, definition: Definition) -> ResourceType:
        name = environment.registry.resolve(definition.type, definition.name)
        place: Path = ("resources", definition.name, "type")
        if name is not None and name.endswith(TEMPLATE_ENDINGS) and name in self._files:
            with self._collect(place):
                return self._provided(name, environment)
            return _ANY_TYPE
        resource_type = self._engine.types.get(name) if name is not None else None
        if resource_type is not None:
            return resource_type
        self._unknown_types.add(definition, name, "".join(self._within), self._top if self._within else None)
        return _ANY_TYPE

    def _provided(self, name: str, environment: Environment) -> ResourceType:
        """Return the resource type that a template file provides."""
        template = self._parse(name)
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

    def _parse(self, name: str) -> Template:
        """Parse a template file. Raises a kind of Invalid, also for later uses of an unreadable file."""
        if name in self._unreadable:
            raise self._unreadable[name]
        try:
            return parse_once(self._files[name])
        except StokerError as error:
            self._unreadable[name] = type(error)(f"{name}: {error.message}")
            raise self._unreadable[name] from None

    def _properties(
        self, kind: ResourceType, definition: Definition, scope: StaticScope, flawed: set[Path]
    ) -> tuple[Properties, Any]:
        """Return the resource's properties and metadata."""
        place: Path = ("resources", definition.name)
        values = self._values(definition.properties, (*place, "properties"), scope, flawed)
        metadata, policy = definition.metadata, definition.update_policy
        if metadata and not any(path[:3] == (*place, "metadata") for path in flawed):
            with self._collect((*place, "metadata")):
                metadata = _map(definition.metadata, scope)
        if policy and not any(path[:3] == (*place, "update_policy") for path in flawed):
            with self._collect((*place, "update_policy")):
                policy = _map(definition.update_policy, scope)
        errors: list[PropertyError] = []
        checked: Properties = {}
        try:
            if kind.properties is None:
                checked = schemas.plain(values)
            else:
                checked = schemas.check(kind.properties, values, errors=errors)
        except PropertyError as error:
            errors.append(error)
        for property_error in errors:
            self._add_property_error(property_error, (*place, "properties"))
        if errors:
            return dict.fromkeys(kind.properties or (), UNKNOWN), metadata
        try:
            kind.check_policy(policy or {}, checked)
        except PropertyError as error:
            self._add_property_error(error, (*place, "update_policy"))
        with self._collect((*place, "properties")):
            kind.validate(checked)
        if kind.name == remote_templates.TYPE.name:
            with self._collect((*place, "properties"), named_already=True):
                remote_templates.check(self._engine, checked, self._budget)
        return checked, metadata

    def _values(self, properties: Any, place: Path, scope: StaticScope, flawed: set[Path]) -> Any:
        """Evaluate the properties. A property with an error is UNKNOWN."""
        if not any(path[:3] == place for path in flawed):
            try:
                return hot.evaluate(properties, scope)
            except RequestLimitExceeded as error:
                raise self._with_place(error, place) from None
            except StokerError as error:
                if not isinstance(properties, dict) or hot.is_call(properties, scope.version):
                    self._flaws.add(Flaw(f"{heat_path(place)}: {error.message}", place, type(error)))
                    return UNKNOWN
        # One by one, to find all errors.
        values = dict.fromkeys(properties, UNKNOWN)
        for name, value in properties.items():
            path = (*place, name)
            if path in flawed:
                continue
            try:
                values[name] = hot.evaluate(value, scope)
            except RequestLimitExceeded as error:
                raise self._with_place(error, path) from None
            except IncorrectAttribute as error:
                # Heat reports this error at the call, any other at the property.
                self._flaws.add(Flaw(error.with_hint(), path, place=heat_path((*path, "get_attr"))))
            except StokerError as error:
                self._flaws.add(Flaw(error.message, path, type(error), error="Property error", place=heat_path(path)))
        return values

    def _add_property_error(self, error: PropertyError, place: Path) -> None:
        path, shown = (*place, *error.path), heat_path((*place, *error.shown))
        self._flaws.add(Flaw(error.problem, path, error="Property error", place=shown))

    def _inside(
        self, kind: ResourceType, name: str, properties: Properties, environment: Environment, depth: int
    ) -> InnerOutline | None:
        """Check the resources inside a resource: those of its template, or a group's members."""
        below = replace(environment, parameters={}, registry=environment.registry.below(name))
        if kind.name.endswith(TEMPLATE_ENDINGS):
            template = self._parse(kind.name)
            bound = self._bind(name, template, properties, below)
            inner = self._deeper(name, kind.name, template, bound, below, depth)
            return InnerOutline(resources=inner, template=template)
        members: dict[str, OutlinedResource] = {}
        for member, type_name, member_properties in self._members(kind, properties):
            definition = Definition(name=member, type=type_name, properties=hot.literal(member_properties))
            members |= self._deeper(name, _GROUPS_TEMPLATE, _frozen(definition), {}, below, depth)
        return InnerOutline(resources=members) if members else None

    def _members(self, kind: ResourceType, properties: Properties) -> Iterable[tuple[str, str, Properties]]:
        if not self._every_member or kind.every_member is None:
            return kind.members(properties)
        return kind.every_member(properties)

    def _deeper(
        self, name: str, file: str, template: Template, parameters: Values, environment: Environment, depth: int
    ) -> dict[str, OutlinedResource]:
        place, around, inside = f"resources.{name}<{file}>", self._flaws, Flaws()
        self._within.append(f"{place}.")
        self._flaws = inside
        try:
            counting = hot.decide(template, parameters, self._files, self._budget, inside)
            return self._check(counting, parameters, environment, depth + 1)
        except RequestLimitExceeded:
            raise
        except StokerError as error:
            if not inside:
                inside.add(Flaw(error.message, (), type(error)))
            return {}
        finally:
            self._flaws = around
            self._within.pop()
            for flaw in inside:
                around.add(flaw.within(place, ("resources", name)))

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
            except ValueError as error:
                self._flaws.add(Flaw(clip(str(error)), path, error="Property error", place=heat_path(path)))
        return values


def _map(source: Any, scope: StaticScope) -> Any:
    value = hot.evaluate(source, scope)
    if value is not UNKNOWN and value is not None and not isinstance(value, dict):
        raise StackValidationFailed(f"Value must be a map, not {kind_of(value)}")
    return value


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
