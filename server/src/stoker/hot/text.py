"""Reads supplied YAML or JSON text, or decoded data, as plain data within limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stoker.hot import yaml_text
from stoker.hot.bounds import check_plain
from stoker.hot.flaw import Flaw
from stoker.hot.words import clip
from stoker.model.errors import Invalid, RequestLimitExceeded


def read(source: str | Mapping[str, Any], noun: str, max_bytes: int) -> dict[str, Any]:
    """
    The top-level map of a ``noun`` ("Template", "Environment"); empty text gives an empty map.

    Raises Invalid, and RequestLimitExceeded for text of more than ``max_bytes``.
    """
    try:
        data = _read_text(source, noun, max_bytes) if isinstance(source, str) else _read_map(source)
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


def _read_map(source: Mapping[str, Any]) -> Any:
    data = dict(source) if isinstance(source, Mapping) else source
    check_plain(data)
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice")
    return members


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")
