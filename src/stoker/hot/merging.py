"""How a parameter's values from several environment files become one, where a file says more than "the later wins"."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from stoker.hot.parameters import values
from stoker.hot.words import quoted
from stoker.model.errors import Invalid

OVERWRITE, MERGE, DEEP_MERGE = "overwrite", "merge", "deep_merge"
STRATEGIES = (OVERWRITE, MERGE, DEEP_MERGE)
#: The key for all parameters of a file that it doesn't name.
DEFAULT = "default"


def strategy_of(name: str, strategies: Mapping[str, Any]) -> str:
    """Raises Invalid for a word that is no strategy."""
    found = strategies.get(name, strategies.get(DEFAULT, OVERWRITE))
    if found not in STRATEGIES:
        raise Invalid(f"parameter_merge_strategies: {name}: {quoted(found)} is none of {', '.join(STRATEGIES)}")
    return str(found)


def strategies_after(earlier: Mapping[str, Any], seen: Collection[str], later: Mapping[str, Any]) -> dict[str, Any]:
    """
    What holds for the files to come: what any file said of a parameter by name, and for those that an earlier file
    had (``seen``) what its default made of them. A default itself is for its own file only. Raises Invalid.
    """
    kept = {name: strategy for name, strategy in earlier.items() if name != DEFAULT}
    if DEFAULT in earlier:
        kept = {name: strategy_of(name, earlier) for name in seen} | kept
    for name in kept.keys() & later.keys():
        if kept[name] != later[name]:
            raise Invalid(f"parameter_merge_strategies: two environments say different things of {name}")
    return {**kept, **later}


def merged(name: str, type_name: str, old: Any, new: Any, strategy: str) -> Any:
    """``new`` put to ``old``. Raises Invalid for types that cannot be put together."""
    if strategy == OVERWRITE:
        return new
    put = _MERGES.get(type_name)
    if put is None:
        raise Invalid(f"parameter_merge_strategies: {name} is a {type_name}, which cannot be merged")
    try:
        first, second = (values.convert(type_name, each) for each in (old, new))
        return _deep(first, second) if strategy == DEEP_MERGE and type_name == "json" else put(first, second)
    except (TypeError, ValueError) as error:
        raise Invalid(f"parameter_merge_strategies: {name}: {error}") from None


def _maps(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        raise TypeError("only maps can be merged")
    return {**old, **_said(new)}


def _said(new: Mapping[str, Any]) -> dict[str, Any]:
    """A null takes nothing away."""
    return {key: part for key, part in new.items() if part is not None}


def _deep(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _deep(old[key], part) if key in old else part for key, part in _said(new).items()}}
    if isinstance(old, list) and isinstance(new, list):
        return old + new
    return old + new if isinstance(old, str) and isinstance(new, str) else new


_MERGES: Mapping[str, Callable[[Any, Any], Any]] = {
    "json": _maps,
    "comma_delimited_list": lambda old, new: old + new,
    "string": lambda old, new: old + new,
    "number": lambda old, new: old + new,
}
