"""References to objects: an id, a name, or a unique prefix of an id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from stoker_client.errors import Ambiguous, NotFound

#: Shortest prefix in characters. A shorter one is more likely a mistake.
MIN_PREFIX = 4
#: Number of candidates in an error message.
_MOST_CANDIDATES = 5
_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_PREFIX = re.compile(rf"[0-9a-f-]{{{MIN_PREFIX},36}}", re.IGNORECASE)
#: Attributes that distinguish candidates, in the order of display.
_DETAILS = ("name", "stack_name", "server_id", "status", "stack_status", "creation_time", "created_at")

Object = TypeVar("Object", bound=Mapping[str, Any])


def is_id(ref: str) -> bool:
    """Whether ``ref`` is a complete id, so that no list needs to be searched."""
    return _ID.fullmatch(ref) is not None


def is_prefix(ref: str) -> bool:
    """Whether ``ref`` may be a prefix of an id."""
    return _PREFIX.fullmatch(ref) is not None and not is_id(ref)


def is_pattern(ref: str) -> bool:
    """Whether ``ref`` is a pattern for several names, such as ``web*``."""
    return not {"*", "?", "["}.isdisjoint(ref)


def choose(objects: Iterable[Object], ref: str, noun: str, *, id_key: str = "id", name_key: str = "name") -> Object:
    """
    Return the object whose id or name is ``ref``, or else whose id begins with it.

    Raises NotFound, or Ambiguous with the candidates.
    """
    choices = list(objects)
    same = [choice for choice in choices if choice[id_key] == ref] or [
        choice for choice in choices if choice.get(name_key) == ref
    ]
    if same:
        return _only(same, ref, f"are named {ref!r}", noun, id_key)
    if len(ref) >= MIN_PREFIX:
        matches = [
            choice for choice in choices if str(choice[id_key]).startswith(ref.lower() if is_prefix(ref) else ref)
        ]
        if matches:
            return _only(matches, ref, f"have ids that begin with {ref!r}", noun, id_key)
    command = noun.replace(" ", "-")
    raise NotFound(f"there is no {noun} {ref!r}; `stoker {command} list` lists them", 404)


def _only(candidates: Sequence[Object], ref: str, what: str, noun: str, id_key: str) -> Object:
    if len(candidates) == 1:
        return candidates[0]
    lines = [_candidate(choice, id_key, ref) for choice in candidates[:_MOST_CANDIDATES]]
    if len(candidates) > _MOST_CANDIDATES:
        lines.append(f"{len(candidates) - _MOST_CANDIDATES} more")
    raise Ambiguous(f"{len(candidates)} {noun}s {what}: {', '.join(lines)}; give one of the ids")


def _candidate(candidate: Mapping[str, Any], id_key: str, ref: str) -> str:
    details = [str(candidate[key]) for key in _DETAILS if candidate.get(key) not in (None, "", ref)]
    return f"{candidate[id_key]} ({' '.join(details)})" if details else str(candidate[id_key])
