"""Merges a parameter's values from several environment files, according to ``parameter_merge_strategies``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from stoker.hot.parameters import values
from stoker.hot.words import quote_word
from stoker.model.errors import Invalid

OVERWRITE, MERGE, DEEP_MERGE = "overwrite", "merge", "deep_merge"
STRATEGIES = (OVERWRITE, MERGE, DEEP_MERGE)
#: The key for all parameters of a file without a strategy of their own.
DEFAULT = "default"


def strategy_of(name: str, strategies: Mapping[str, Any]) -> str:
    """The strategy for a parameter. Raises Invalid for an unknown strategy."""
    strategy = strategies.get(name, strategies.get(DEFAULT, OVERWRITE))
    if strategy not in STRATEGIES:
        raise Invalid(f"parameter_merge_strategies: {name}: {quote_word(strategy)} is none of {', '.join(STRATEGIES)}")
    return str(strategy)


def strategies_after(earlier: Mapping[str, Any], seen: Collection[str], later: Mapping[str, Any]) -> dict[str, Any]:
    """
    The strategies that apply to later files. Raises Invalid.

    These are the strategies that any file sets for a parameter by name. Parameters of earlier files (``seen``) also
    keep the default of their file, because a default applies to its own file only.
    """
    kept = {name: strategy for name, strategy in earlier.items() if name != DEFAULT}
    if DEFAULT in earlier:
        kept = {name: strategy_of(name, earlier) for name in seen} | kept
    for name in kept.keys() & later.keys():
        if kept[name] != later[name]:
            raise Invalid(f"parameter_merge_strategies: two environments say different things of {name}")
    return {**kept, **later}


def merge(name: str, type_name: str, old: Any, new: Any, strategy: str) -> Any:
    """Merge two values of a parameter. Raises Invalid for types that cannot be merged."""
    if strategy == OVERWRITE:
        return new
    put = _MERGES.get(type_name)
    if put is None:
        raise Invalid(f"parameter_merge_strategies: {name} is a {type_name}, which cannot be merged")
    try:
        first, second = (values.convert(type_name, value) for value in (old, new))
        return _deep(first, second) if strategy == DEEP_MERGE and type_name == "json" else put(first, second)
    except (TypeError, ValueError) as error:
        raise Invalid(f"parameter_merge_strategies: {name}: {error}") from None


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
