"""
Environments: parameter values, type mappings and event sinks, separate from the template.

Of several environments, the later one wins, unless ``parameter_merge_strategies`` merges the values of a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from stoker.hot import parameter_values
from stoker.hot.flaw import Flaw, Path, flaw, list_at, map_at
from stoker.hot.registry import Registry
from stoker.hot.text import MAX_ENVIRONMENT, read
from stoker.hot.words import quote_word
from stoker.model.errors import Invalid

_SINK_TYPE = "zaqar-queue"
_QUEUE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
#: Seconds until a message expires: default, minimum and maximum.
_TTL, _SHORTEST, _LONGEST = 3600, 60, 1_209_600
#: Sinks of one config at most.
_MOST_SINKS = 10


@dataclass(frozen=True, slots=True)
class Sink:
    """A queue that receives events; ``ttl`` is the life of a message in seconds."""

    queue: str
    ttl: int

    def to_json(self) -> dict[str, Any]:
        """The entry as written."""
        return {"type": _SINK_TYPE, "target": self.queue} | ({} if self.ttl == _TTL else {"ttl": self.ttl})

    @classmethod
    def of(cls, raw: Any, index: int) -> Sink:
        """Parse one entry. Raises a flaw."""
        path: Path = ("event_sinks", index)
        data: Mapping[str, Any] = map_at(raw, path)
        for name in data:
            if name not in ("type", "target", "ttl"):
                raise flaw((*path, name), "an event sink has a type, a target and perhaps a ttl", Invalid)
        if data.get("type") != _SINK_TYPE:
            raise flaw((*path, "type"), f"the type of an event sink is {_SINK_TYPE}", Invalid)
        target, ttl = data.get("target"), data.get("ttl", _TTL)
        if not isinstance(target, str) or not _QUEUE.fullmatch(target):
            raise flaw((*path, "target"), f"the name of a queue is needed, not {quote_word(target)}", Invalid)
        if isinstance(ttl, bool) or not isinstance(ttl, int) or not _SHORTEST <= ttl <= _LONGEST:
            raise flaw((*path, "ttl"), f"seconds from {_SHORTEST} to {_LONGEST} are needed", Invalid)
        return cls(target, ttl)


def list_sinks(raw: Any) -> tuple[Sink, ...]:
    """Parse the option ``event_sinks`` of a config; None has no sinks. Raises a flaw."""
    if raw is None:
        return ()
    if not isinstance(raw, list | tuple) or len(raw) > _MOST_SINKS:
        raise flaw(("event_sinks",), f"a list of at most {_MOST_SINKS} event sinks is needed", Invalid)
    return tuple(Sink.of(entry, index) for index, entry in enumerate(raw))


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
        except Flaw as problem:
            raise Invalid(f"Environment not in valid format: {problem.error(source)}") from None
        return cls(
            parameters=data.get("parameters", {}),
            parameter_defaults=data.get("parameter_defaults", {}),
            registry=registry,
            event_sinks=sinks,
            encrypted_param_names=tuple(data.get("encrypted_param_names", ())),
            parameter_merge_strategies=data.get("parameter_merge_strategies", {}),
        )

    def below(self, name: str) -> Environment:
        """Return the environment of the nested stack of the resource called ``name``, which has its own parameters."""
        return replace(self, parameters={}, registry=self.registry.below(name))

    def merge(self, later: Environment, types: Mapping[str, str] | None = None) -> Environment:
        """
        Merge entry by entry; the later wins, unless a merge strategy says otherwise for a parameter in ``types``.
        Raises Invalid.
        """
        seen = self.parameters.keys() | self.parameter_defaults.keys()
        strategies = _strategies_after(self.parameter_merge_strategies, seen, later.parameter_merge_strategies)
        return Environment(
            parameters=_merge(self.parameters, later.parameters, strategies, types or {}),
            parameter_defaults=_merge(self.parameter_defaults, later.parameter_defaults, strategies, types or {}),
            registry=self.registry.merge(later.registry),
            event_sinks=later.event_sinks or self.event_sinks,
            encrypted_param_names=later.encrypted_param_names or self.encrypted_param_names,
            parameter_merge_strategies=strategies,
        )

    def to_json(self) -> dict[str, Any]:
        """Heat's form, which ``parse`` accepts. Merge strategies belong to one file, so they appear only if set."""
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
            merged[name] = _merge_values(name, types[name], merged[name], value, _strategy_of(name, strategies))
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


_OVERWRITE, _MERGE, _DEEP_MERGE = "overwrite", "merge", "deep_merge"
_STRATEGIES = (_OVERWRITE, _MERGE, _DEEP_MERGE)
#: The key for all parameters of a file without a strategy of their own.
_DEFAULT = "default"


def _strategy_of(name: str, strategies: Mapping[str, Any]) -> str:
    """The strategy for a parameter. Raises Invalid for an unknown strategy."""
    strategy = strategies.get(name, strategies.get(_DEFAULT, _OVERWRITE))
    if strategy not in _STRATEGIES:
        raise Invalid(f"parameter_merge_strategies: {name}: {quote_word(strategy)} is none of {', '.join(_STRATEGIES)}")
    return str(strategy)


def _strategies_after(earlier: Mapping[str, Any], seen: Collection[str], later: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the strategies for later files. A strategy for a named parameter stays; the default of a file stays for the
    parameters that it has ``seen``. Raises Invalid.
    """
    kept = {name: strategy for name, strategy in earlier.items() if name != _DEFAULT}
    if _DEFAULT in earlier:
        kept = {name: _strategy_of(name, earlier) for name in seen} | kept
    for name in kept.keys() & later.keys():
        if kept[name] != later[name]:
            raise Invalid(f"parameter_merge_strategies: two environments say different things of {name}")
    return {**kept, **later}


def _merge_values(name: str, type_name: str, old: Any, new: Any, strategy: str) -> Any:
    """Merge two values of a parameter. Raises Invalid for types that cannot be merged."""
    if strategy == _OVERWRITE:
        return new
    put = _MERGES.get(type_name)
    if put is None:
        raise Invalid(f"parameter_merge_strategies: {name} is a {type_name}, which cannot be merged")
    try:
        first, second = (parameter_values.convert(type_name, value) for value in (old, new))
        return _deep(first, second) if strategy == _DEEP_MERGE and type_name == "json" else put(first, second)
    except TypeError as error:
        raise Invalid(f"parameter_merge_strategies: {name}: {error}") from None
    except ValueError:  # not repeated here, because it has the value, which may be a secret
        raise Invalid(f"parameter_merge_strategies: {name}: a value is no {type_name}") from None


def _maps(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        raise TypeError("only maps can be merged")
    return {**old, **_as_text(new)}


def _as_text(new: Mapping[str, Any]) -> dict[str, Any]:
    """Remove nulls: they do not replace earlier values."""
    return {key: part for key, part in new.items() if part is not None}


def _deep(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _deep(old[key], part) if key in old else part for key, part in _as_text(new).items()}}
    if isinstance(old, list) and isinstance(new, list):
        return old + new
    return old + new if isinstance(old, str) and isinstance(new, str) else new


_MERGES: Mapping[str, Callable[[Any, Any], Any]] = {
    "json": _maps,
    "comma_delimited_list": lambda old, new: old + new,
    "string": lambda old, new: old + new,
    "number": lambda old, new: old + new,
}
