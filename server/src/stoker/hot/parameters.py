"""Binds values to a template's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from stoker.hot import parameter_values
from stoker.hot.environment import Environment
from stoker.hot.flaw import Flaw, Flaws
from stoker.hot.parameter_schema import ParameterSchema
from stoker.hot.scope import UNKNOWN
from stoker.hot.syntaxes import pseudo_parameters
from stoker.hot.template import Template
from stoker.hot.words import clip, did_you_mean
from stoker.model.errors import (
    ImmutableParameterModified,
    UnknownUserParameter,
    UserParameterMissing,
)
from stoker.model.secrets import REDACTED


class Parameters(Struct, frozen=True):
    """The values of all parameters of a stack, including pseudo parameters, as stored with the stack."""

    values: Mapping[str, Any]
    types: Mapping[str, str]
    hidden: frozenset[str] = frozenset()
    immutable: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        """The result of ``get_param``. Raises UserParameterMissing."""
        try:
            return self.values[name]
        except KeyError:
            raise UserParameterMissing(f"The Parameter ({clip(name)}) was not provided.") from None

    def for_display(self) -> dict[str, str]:
        """All values as text, as in Heat's API; hidden values are redacted."""
        return {
            name: REDACTED if name in self.hidden else parameter_values.format_value(self.types[name], value)
            for name, value in self.values.items()
        }

    def check_update(self, new: Parameters) -> None:
        """Raise ImmutableParameterModified if ``new`` changes a parameter that it declares immutable."""
        changed = [
            name for name in sorted(new.immutable) if name in self.values and self.values[name] != new.values[name]
        ]
        if changed:
            raise ImmutableParameterModified(
                f"The following parameters are immutable and may not be updated: {', '.join(changed)}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the parameters in the form that the database stores."""
        return {**asdict(self), "hidden": sorted(self.hidden), "immutable": sorted(self.immutable)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Parameters:
        """Restore the parameters from ``to_json``."""
        return cls(data["values"], data["types"], frozenset(data["hidden"]), frozenset(data["immutable"]))


def bind(
    template: Template,
    environment: Environment,
    *,
    supplied: Mapping[str, Any] | None = None,
    pseudo: Mapping[str, Any] | None = None,
    flaws: Flaws | None = None,
    may_miss: bool = False,
) -> Parameters:
    """
    Choose for each parameter the first value that is not null of: ``supplied``, the environment's ``parameters`` and
    ``parameter_defaults``, the template's default; and of ``pseudo`` (None: UNKNOWN) those of its version.

    With ``flaws``, problems are added there, their values are UNKNOWN, and the caller raises the error. With
    ``may_miss``, missing values are UNKNOWN.
    """
    collector = Flaws() if flaws is None else flaws
    values = {**environment.parameters, **(supplied or {})}
    _check_names(values, template, collector)
    names = pseudo_parameters(template.version)
    if pseudo is None:
        pseudo = dict.fromkeys(names, UNKNOWN)
    pseudo = {name: value for name, value in pseudo.items() if name in names}
    schemas = template.parameters.values()
    bound = {
        schema.name: _value(
            schema, values.get(schema.name), environment.parameter_defaults.get(schema.name), collector, may_miss
        )
        for schema in schemas
    }
    if flaws is None:
        collector.raise_any()
    return Parameters(
        values={**pseudo, **bound},
        types=dict.fromkeys(pseudo, "string") | {schema.name: schema.type for schema in schemas},
        hidden=frozenset(schema.name for schema in schemas if schema.hidden),
        immutable=frozenset(schema.name for schema in schemas if schema.immutable),
    )


def _check_names(supplied: Iterable[str], template: Template, flaws: Flaws) -> None:
    """Add a problem for each supplied parameter that the template does not declare."""
    refused = {flaw.path[1] for flaw in flaws if flaw.path[:1] == ("parameters",) and len(flaw.path) > 1}
    for name in supplied:
        if name not in template.parameters and name not in refused:
            hint = did_you_mean(name, template.parameters)
            sentence = f"The Parameter ({clip(name)}) was not defined in template{hint or '.'}"
            flaws.add(Flaw(sentence, (), UnknownUserParameter))


def _value(schema: ParameterSchema, value: Any, environment_default: Any, flaws: Flaws, may_miss: bool) -> Any:
    chosen = schema.choose(value, environment_default)
    path = ("parameters", schema.name)
    if chosen is None:
        if not may_miss:
            flaws.add(Flaw(f"The Parameter ({schema.name}) was not provided.", path, UserParameterMissing))
        return UNKNOWN
    if chosen is UNKNOWN:
        return UNKNOWN
    try:
        return schema.accept(chosen)
    except ValueError as error:
        flaws.add(Flaw(f"Parameter '{schema.name}' is invalid: {clip(str(error))}", path))
        return UNKNOWN
