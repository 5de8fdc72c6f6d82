"""Bind values to a template's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.hot.environment import Environment
from stoker.hot.parameters import values
from stoker.hot.parameters.schema import ParameterSchema
from stoker.hot.pseudo import names_of
from stoker.hot.template import Template
from stoker.hot.words import clip
from stoker.model.errors import (
    ImmutableParameterModified,
    StackValidationFailed,
    UnknownUserParameter,
    UserParameterMissing,
)

HIDDEN = "******"


@dataclass(frozen=True)
class Parameters:
    """All parameters of one stack with their values, pseudo parameters too. Kept with the stack, used at every step."""

    values: Mapping[str, Any]
    types: Mapping[str, str]
    hidden: frozenset[str] = frozenset()
    immutable: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        """What ``get_param`` gives."""
        try:
            return self.values[name]
        except KeyError:
            raise UserParameterMissing(f"The Parameter ({clip(name)}) was not provided.") from None

    def shown(self) -> dict[str, str]:
        """Every value as text, as Heat's API shows it; hidden ones masked."""
        return {
            name: HIDDEN if name in self.hidden else values.shown(self.types[name], value)
            for name, value in self.values.items()
        }

    def secrets(self) -> tuple[str, ...]:
        """The texts that hidden ones hold, also inside of their lists and maps."""
        return tuple({text for name in sorted(self.hidden) for text in _texts(self.values.get(name)) if text})

    def check_update(self, new: Parameters) -> None:
        """Raise ImmutableParameterModified when ``new`` changes what it declares immutable."""
        changed = [
            name for name in sorted(new.immutable) if name in self.values and self.values[name] != new.values[name]
        ]
        if changed:
            raise ImmutableParameterModified(
                f"The following parameters are immutable and may not be updated: {', '.join(changed)}"
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "values": dict(self.values),
            "types": dict(self.types),
            "hidden": sorted(self.hidden),
            "immutable": sorted(self.immutable),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Parameters:
        return cls(data["values"], data["types"], frozenset(data["hidden"]), frozenset(data["immutable"]))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def bind(
    template: Template,
    environment: Environment,
    *,
    supplied: Mapping[str, Any] | None = None,
    pseudo: Mapping[str, str],
) -> Parameters:
    """
    Choose a value for every parameter: ``supplied`` (the request's own) before the environment's ``parameters`` before
    its ``parameter_defaults`` before the template's default; a null is as good as nothing. Of ``pseudo``, the template
    gets what its version has.
    """
    given = {**environment.parameters, **(supplied or {})}
    for name in given:
        if name not in template.parameters:
            raise UnknownUserParameter(f"The Parameter ({clip(name)}) was not defined in template.")
    pseudo = {name: value for name, value in pseudo.items() if name in names_of(template.version)}
    schemas = template.parameters.values()
    bound = {
        schema.name: _value(schema, given.get(schema.name), environment.parameter_defaults.get(schema.name))
        for schema in schemas
    }
    return Parameters(
        values={**pseudo, **bound},
        types=dict.fromkeys(pseudo, "string") | {schema.name: schema.type for schema in schemas},
        hidden=frozenset(schema.name for schema in schemas if schema.hidden),
        immutable=frozenset(schema.name for schema in schemas if schema.immutable),
    )


def _value(schema: ParameterSchema, given: Any, site_default: Any) -> Any:
    chosen = site_default if given is None else given
    if chosen is None:
        chosen = schema.default
    if chosen is None:
        raise UserParameterMissing(f"The Parameter ({schema.name}) was not provided.")
    try:
        return schema.accept(chosen)
    except ValueError as error:
        raise StackValidationFailed(f"Parameter '{schema.name}' is invalid: {clip(str(error))}") from None
