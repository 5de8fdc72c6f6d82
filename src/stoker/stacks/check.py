"""
What can be known to be wrong before anything exists: types, properties, references, and the same inside of templates
that resources are made of, as deep as they go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Definition, Environment, Template, Values
from stoker.hot.words import clip, kind_of
from stoker.model.errors import RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.resources import properties as schemas
from stoker.resources.base import Properties, ResourceType
from stoker.resources.nesting import TEMPLATE, TEMPLATE_ENDINGS
from stoker.resources.properties import Property, PropertyError
from stoker.stacks.engine import Engine
from stoker.stacks.foresight import STANDS_FOR, Deploys, Seen, deploys
from stoker.stacks.scope import StaticScope

#: Stacks in stacks, the outermost counted.
MAX_DEPTH = 5
_NEWEST = "2021-04-16"

_KINDS: Mapping[str, schemas.Kind] = {
    "string": "string",
    "number": "number",
    "comma_delimited_list": "any",  # also text with commas: the parameter itself tells
    "json": "any",
    "boolean": "boolean",
}


@lru_cache(maxsize=64)
def parse_once(text: str) -> Template:
    """A thousand members of one template need it parsed once."""
    return hot.parse(text)


class Checker:
    """One request's look at its templates."""

    def __init__(self, engine: Engine, files: Mapping[str, str]) -> None:
        self._engine = engine
        self._files = files
        #: Resources seen, those of templates inside of templates too; a group counts as one of its members.
        self._count = 0
        #: Which of them deploy to servers that are known by their ids.
        self.deploys: list[Deploys] = []
        #: Whether any may come to stand for a server that is enrolled.
        self.stands_for = False
        #: Where the template that is looked at is, and the resource of the outermost that it is of.
        self._within: list[str] = []
        self._top: str | None = None

    def check(
        self, template: Template, parameters: Values, environment: Environment, text: Any = None, depth: int = 1
    ) -> dict[str, dict[str, Any]]:
        """
        The definitions by resource name, in JSON form: final types, files in place.

        ``parameters`` may be UNKNOWN inside of nested templates. Raises a kind of Invalid that names the place.
        """
        if depth > MAX_DEPTH:
            raise RequestLimitExceeded(f"Recursion depth exceeds {MAX_DEPTH}.")
        self._count += len(template.resources)
        limit = self._engine.limits.resources_per_stack
        if 0 <= limit < self._count:
            raise RequestLimitExceeded(f"a stack may have {limit} resources with all inside of it, this one has more")
        types = {name: self._type(environment, each, text) for name, each in template.resources.items()}
        scope = StaticScope(template.version, parameters, self._files, types)
        definitions, seen = {}, {}
        for name, each in template.resources.items():
            if depth == 1:
                self._top = name
            final = replace(
                each,
                type=types[name].name,
                hooks=environment.registry.hooks(name),
                restricted_actions=environment.registry.restricted_actions(name),
            )
            definition = hot.inline_files(final, self._files)
            values = self._properties(types[name], definition, scope, text)
            seen[name] = Seen(types[name].name, definition, values)
            self._inside(types[name], name, values, environment, depth)
            definitions[name] = definition.to_json()
        self.stands_for |= any(each.type == STANDS_FOR for each in seen.values())
        # Outer before inner: a group's own words before those of its sample.
        self.deploys[:0] = deploys("".join(self._within), self._top if depth > 1 else None, seen)
        for name, output in template.outputs.items():
            _located(text, ("outputs", name, "value"), lambda value=output.value: hot.evaluate(value, scope))
        return definitions

    def _type(self, environment: Environment, definition: Definition, text: Any) -> ResourceType:
        name = environment.registry.resolve(definition.type, definition.name)
        place = ("resources", definition.name, "type")
        shown = definition.type if name in (None, definition.type) else f"{definition.type} (mapped to {name})"
        if name is not None and name.endswith(TEMPLATE_ENDINGS):
            provided: ResourceType = _located(text, place, lambda: self._provided(name, shown, environment))
            return provided
        found = self._engine.find_type(name) if name is not None else None
        if found is None:
            raise StackValidationFailed(
                f"resources.{definition.name}.type: The Resource Type ({clip(shown)}) could not be found."
                f"{hot.at(text, place)}"
            )
        return found

    def _provided(self, name: str, shown: str, environment: Environment) -> ResourceType:
        """What a template makes of itself as a type."""
        if name not in self._files:
            raise StackValidationFailed(
                f"The Resource Type ({clip(shown)}) could not be found: no such file came with it."
            )
        template = self._parsed(name)
        properties = {
            each.name: Property(
                kind=_KINDS[each.type],
                required=each.default is None and each.name not in environment.parameter_defaults,
                update_allowed=True,
                description=each.description,
            )
            for each in template.parameters.values()
        }
        attributes = {each.name: each.description for each in template.outputs.values()}
        return replace(TEMPLATE, name=name, properties=properties, attributes=attributes)

    def _parsed(self, name: str) -> Template:
        try:
            return parse_once(self._files[name])
        except StokerError as error:
            raise type(error)(f"{name}: {error.message}") from None

    def _properties(self, kind: ResourceType, definition: Definition, scope: StaticScope, text: Any) -> Properties:
        place = ("resources", definition.name)
        values: Properties = _located(text, (*place, "properties"), lambda: hot.evaluate(definition.properties, scope))
        _located(text, (*place, "metadata"), lambda: _map(definition.metadata, scope))
        policy = _located(text, (*place, "update_policy"), lambda: _map(definition.update_policy, scope))
        part = "properties"
        try:
            checked = schemas.plain(values) if kind.properties is None else schemas.check(kind.properties, values)
            part = "update_policy"
            kind.check_policy(policy or {}, checked)
        except PropertyError as error:
            path = (*place, part, *error.path)
            dotted = ".".join(map(str, path))
            raise StackValidationFailed(f"Property error: {dotted}: {error.problem}{hot.at(text, path)}") from None
        _located(text, (*place, "properties"), lambda: kind.validate(checked))
        return checked

    def _inside(
        self, kind: ResourceType, name: str, properties: Properties, environment: Environment, depth: int
    ) -> None:
        """What the resource will be made of."""
        below = replace(environment, parameters={}, registry=environment.registry.below(name))
        for member, type_name, given in kind.members(properties):
            made = Definition(name=member, type=type_name, properties=hot.literal(given))
            self._deeper(f"resources.{name}", _holding(made), {}, below, depth)
        if kind.name.endswith(TEMPLATE_ENDINGS):
            template = self._parsed(kind.name)
            bound = _bound(f"resources.{name}", template, properties, below)
            self._deeper(f"resources.{name}<{kind.name}>", template, bound, below, depth)

    def _deeper(self, place: str, template: Template, parameters: Values, environment: Environment, depth: int) -> None:
        self._within.append(f"{place}.")
        try:
            counting = hot.decide(template, parameters, self._files)
            self.check(counting, parameters, environment, depth=depth + 1)
        except StokerError as error:
            raise type(error)(f"{place}.{error.message}") from None
        finally:
            self._within.pop()


def _map(said: Any, scope: StaticScope) -> Any:
    value = hot.evaluate(said, scope)
    if value is not UNKNOWN and value is not None and not isinstance(value, dict):
        raise StackValidationFailed(f"Value must be a map, not {kind_of(value)}")
    return value


def _bound(place: str, template: Template, properties: Properties, environment: Environment) -> dict[str, Any]:
    """The inner parameters, as far as they are known yet. Raises StackValidationFailed."""
    found: dict[str, Any] = dict.fromkeys(hot.pseudo_parameters(template.version), UNKNOWN)
    for schema in template.parameters.values():
        given = properties.get(schema.name)
        if given is None:
            given = environment.parameter_defaults.get(schema.name)
        if given is None:
            given = schema.default
        try:
            found[schema.name] = given if _is_unknown(given) else schema.accept(given)
        except ValueError as error:
            raise StackValidationFailed(f"{place}.properties.{schema.name}: {clip(str(error))}") from None
    return found


def _is_unknown(value: Any) -> bool:
    return hot.weigh(value)[1]


def _holding(definition: Definition) -> Template:
    return Template(
        version=_NEWEST,
        description="",
        parameters={},
        parameter_groups=(),
        resources={definition.name: definition},
        outputs={},
    )


def _located(text: Any, path: tuple[str | int, ...], do: Any) -> Any:
    try:
        return do()
    except StokerError as error:
        dotted = ".".join(map(str, path))
        if dotted.rsplit(".", 1)[0] in error.message:
            raise
        raise type(error)(f"{dotted}: {error.message}{hot.at(text, path)}") from None
