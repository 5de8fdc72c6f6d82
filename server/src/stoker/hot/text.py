"""Reads supplied YAML or JSON text, or decoded data, as plain data within limits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from stoker.hot import yaml_text
from stoker.hot.flaw import Flaw, Path, dotted_path
from stoker.hot.scalars import MAX_DEPTH, describe_key, text_problem
from stoker.hot.words import clip, kind_of
from stoker.model.errors import Invalid, RequestLimitExceeded

#: Heat's limits in bytes: for a template, and for a request's body, which limits an environment.
MAX_TEMPLATE = 524_288
MAX_ENVIRONMENT = 1_048_576
#: About the size of the largest float. JSON has no limit, but its parsers do.
MAX_INTEGER_BITS = 1024


def read(source: str | Mapping[str, Any], noun: str, max_bytes: int) -> dict[str, Any]:
    """Return the map of a ``noun`` ("Template"), {} for empty text. Raises Invalid, RequestLimitExceeded."""
    try:
        if isinstance(source, str):
            data = _read_text(source, noun, max_bytes)
        else:
            data = dict(source) if isinstance(source, Mapping) else source
            check_plain(data)
    except yaml_text.Unreadable as error:
        raise Invalid(f"{noun} not in valid format: {clip(error.problem)} (line {error.line})") from None
    except Flaw as flaw:
        raise Invalid(f"{noun} not in valid format: {flaw.error(source)}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise Invalid(f"{noun} not in valid format: The {noun.lower()} is not a JSON object or YAML mapping.")
    return data


def read_json(text: str) -> Any:
    """Strict JSON within the limits. Raises ValueError."""
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)  # noqa: TID251 — the checks follow
    except RecursionError:
        # The decoder has a depth limit of its own; Stoker's limit is far lower.
        raise ValueError("nested too deeply") from None
    try:
        check_plain(data)
    except Flaw as flaw:
        raise ValueError(flaw.sentence) from None
    return data


def _read_text(text: str, noun: str, max_bytes: int) -> Any:
    try:
        size = len(text) if len(text) > max_bytes else len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise yaml_text.Unreadable("half a surrogate pair is no character", line) from None
    if size > max_bytes:
        raise RequestLimitExceeded(
            f"Request limit exceeded: {noun} size ({size} bytes) exceeds maximum allowed size ({max_bytes} bytes)."
        )
    if text.lstrip()[:1] == "{":
        try:
            return read_json(text)
        except ValueError:
            # Flow-style YAML or invalid JSON: the YAML parser accepts nearly all of JSON and reports the line.
            pass
    return yaml_text.load(text, max_weight=2 * max_bytes)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice")
    return members


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def check_plain(root: Any) -> None:
    """Raise a flaw unless ``root`` is JSON data within these limits. Does not recurse."""
    pending: list[tuple[Any, Path]] = [(root, ())]
    while pending:
        value, path = pending.pop()
        kind = type(value)
        if kind is str:
            problem = text_problem(value)
        elif kind is dict or kind is list:
            problem = "nested too deeply" if len(path) >= MAX_DEPTH else None
            if not problem:
                pending.extend(_children(value, path))
        else:
            problem = _scalar_problem(value)
        if problem:
            raise Flaw(f"{dotted_path(path) or 'top level'}: {problem}", path, Invalid)


def _children(value: Any, path: Path) -> list[tuple[Any, Path]]:
    """The parts that need a check. Plain ASCII text, most of a template, is checked here without building its path."""
    if type(value) is list:
        return [(item, (*path, index)) for index, item in enumerate(value) if not _harmless(item)]
    for key in value:
        if type(key) is not str or not key.isascii() or "\0" in key:
            _check_key(key, path)
    return [(item, (*path, key)) for key, item in value.items() if not _harmless(item)]


def _harmless(value: Any) -> bool:
    return type(value) is str and value.isascii() and "\0" not in value


def _check_key(key: Any, path: Path) -> None:
    place = dotted_path(path) or "top level"
    if type(key) is not str:
        raise Flaw(f"{place}: keys must be text, not {describe_key(key)}", path, Invalid)
    problem = text_problem(key)
    if problem:
        raise Flaw(f"{place}: a key {problem}", path, Invalid)


def _scalar_problem(value: Any) -> str | None:
    if value is None or type(value) is bool:
        return None
    if type(value) is int:
        return "the number is too large" if value.bit_length() > MAX_INTEGER_BITS else None
    if type(value) is float:
        return None if math.isfinite(value) else "infinity and NaN are no JSON numbers"
    return f"{kind_of(value)} is no JSON value"
