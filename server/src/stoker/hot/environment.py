"""Environments: parameter values and type mappings, separate from the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from stoker.hot.bounds import MAX_ENVIRONMENT
from stoker.hot.flaw import Flaw
from stoker.hot.merge_strategies import merge, strategies_after, strategy_of
from stoker.hot.registry import Registry
from stoker.hot.shapes import list_at, map_at
from stoker.hot.sinks import Sink
from stoker.hot.text import read
from stoker.model.errors import Invalid

_MAPS = ("parameters", "parameter_defaults", "resource_registry", "parameter_merge_strategies")
_LISTS = ("event_sinks", "encrypted_param_names")


class Environment(Struct, frozen=True):
    """The parsed sections of an environment."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    parameter_defaults: Mapping[str, Any] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    event_sinks: tuple[Sink, ...] = ()
    encrypted_param_names: tuple[Any, ...] = ()
    parameter_merge_strategies: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, source: str | Mapping[str, Any] | None) -> Environment:
        """Parse an environment from text or decoded JSON; None is an empty environment. Raises Invalid."""
        data = {} if source is None else read(source, "Environment", MAX_ENVIRONMENT)
        try:
            _check(data)
            registry = Registry.parse(data.get("resource_registry", {}), ("resource_registry",))
            sinks = tuple(Sink.of(raw, index) for index, raw in enumerate(data.get("event_sinks", ())))
        except Flaw as flaw:
            raise Invalid(f"Environment not in valid format: {flaw.error(source)}") from None
        return cls(
            parameters=data.get("parameters", {}),
            parameter_defaults=data.get("parameter_defaults", {}),
            registry=registry,
            event_sinks=sinks,
            encrypted_param_names=tuple(data.get("encrypted_param_names", ())),
            parameter_merge_strategies=data.get("parameter_merge_strategies", {}),
        )

    def merge(self, later: Environment, types: Mapping[str, str] | None = None) -> Environment:
        """
        Merge two environments entry by entry; the later one wins.

        ``parameter_merge_strategies`` can change this for parameters whose type is in ``types``. Raises Invalid.
        """
        seen = self.parameters.keys() | self.parameter_defaults.keys()
        strategies = strategies_after(self.parameter_merge_strategies, seen, later.parameter_merge_strategies)
        return Environment(
            parameters=_merge(self.parameters, later.parameters, strategies, types or {}),
            parameter_defaults=_merge(self.parameter_defaults, later.parameter_defaults, strategies, types or {}),
            registry=self.registry.merge(later.registry),
            event_sinks=later.event_sinks or self.event_sinks,
            encrypted_param_names=later.encrypted_param_names or self.encrypted_param_names,
            parameter_merge_strategies=strategies,
        )

    def to_json(self) -> dict[str, Any]:
        """
        Heat's representation, which ``parse`` accepts. Merge strategies appear only if set, as they belong to one file.
        """
        sections: dict[str, Any] = {
            "parameters": dict(self.parameters),
            "parameter_defaults": dict(self.parameter_defaults),
            "resource_registry": self.registry.to_json(),
            "event_sinks": [sink.to_json() for sink in self.event_sinks],
            "encrypted_param_names": list(self.encrypted_param_names),
        }
        if self.parameter_merge_strategies:
            sections["parameter_merge_strategies"] = dict(self.parameter_merge_strategies)
        return sections


def _merge(
    old: Mapping[str, Any], new: Mapping[str, Any], strategies: Mapping[str, Any], types: Mapping[str, str]
) -> dict[str, Any]:
    merged = dict(old)
    for name, value in new.items():
        if name not in types or merged.get(name) is None:
            merged[name] = value
        elif value is not None:
            merged[name] = merge(name, types[name], merged[name], value, strategy_of(name, strategies))
    return merged


def _check(data: dict[str, Any]) -> None:
    for name, section in data.items():
        if name not in _MAPS and name not in _LISTS:
            raise Flaw(f'environment has wrong section "{name}"', (name,), Invalid)
        if section is None:
            raise Flaw(f'environment has empty section "{name}"', (name,), Invalid)
        if name in _MAPS:
            map_at(section, (name,))
        else:
            list_at(section, (name,))
