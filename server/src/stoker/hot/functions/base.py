"""
What a function of the template language is, and what several functions need.

A function is a subclass of ``Function`` in a module of this package, or of another syntax (``syntaxes``). For example::

    class Upper(Function):
        \"\"\"``{upper: text}``: the text in upper case.\"\"\"

        name = "upper"
        since = "2021-04-16"

        def evaluate(self, argument: Any, scope: Scope) -> str:
            return str(argument).upper()
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stoker.hot.scope import MAX_WEIGHT, Scope
from stoker.hot.words import kind_of
from stoker.model.errors import StackValidationFailed

#: Index as text; no list needs more digits.
_INDEX = re.compile(r"-?[0-9]{1,18}", re.ASCII)


class Function:
    """A function of the template language. The first line of a subclass's docstring describes it to users."""

    name = ""
    #: The first version with the function.
    since = ""
    #: The first version without the function; empty: no version of HOT has it.
    until: str | None = None
    #: The first version whose conditions may call the function.
    condition_since: str | None = None
    #: If the argument is a list of fixed parts: the possible numbers of parts, and what they are, for an error.
    counts: tuple[int, ...] = ()
    parts = ""

    @property
    def description(self) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(self) or "").partition("\n")[0]

    def is_in(self, version: str) -> bool:
        """Whether the version of HOT has the function."""
        return self.since <= version and (self.until is None or version < self.until)

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        """Return the value of a call whose evaluated argument has passed the check. Raises StackValidationFailed."""
        raise NotImplementedError

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        """
        Raise StackValidationFailed for an argument that cannot work.

        ``is_value``: the argument is evaluated; otherwise, any part of it may be a call (``is_call``).
        """
        if self.counts and (not isinstance(argument, list) or len(argument) not in self.counts):
            raise StackValidationFailed(f'"{self.name}" needs a list: {self.parts}')

    def references(self, argument: Any) -> Iterable[str]:
        """Return the names of the resources that an unevaluated call uses."""
        return ()

    def parameters(self, argument: Any) -> Iterable[str]:
        """Return the names of the parameters that an unevaluated call uses."""
        return ()

    def files(self, argument: Any) -> Iterable[str]:
        """Return the names of the files that an unevaluated call uses."""
        return ()


def is_call(value: Any) -> bool:
    """Whether an unevaluated argument may be a function call, whose result is not known yet."""
    return isinstance(value, dict) and len(value) == 1


def as_json(name: str, value: Any) -> str:
    """Return a value that the function ``name`` writes as JSON. Raises StackValidationFailed."""
    try:
        return json.dumps(value, sort_keys=True)
    except (RecursionError, TypeError, ValueError):
        raise StackValidationFailed(f'"{name}": a value cannot be written as JSON') from None


def as_text(name: str, part: str, value: Any) -> str:
    """Return a scalar as text. Raises StackValidationFailed, which names the ``part`` of the argument."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise StackValidationFailed(f'"{name}"{part} must be text, not {kind_of(value)}')
    return str(value)


def select(value: Any, path: Sequence[Any], missing: Any = None) -> Any:
    """The part of ``value`` at ``path``; ``missing`` if the path does not exist."""
    try:
        for step in path:
            value = _step(value, step)
    except (KeyError, IndexError, TypeError, ValueError):
        return missing
    return value


def index_of(segment: Any) -> int:
    """Parse an index: an integer or its text. Raises ValueError."""
    if type(segment) is int:
        return segment
    if not isinstance(segment, str) or not _INDEX.fullmatch(segment):
        raise ValueError(segment)
    return int(segment)


def _step(value: Any, step: Any) -> Any:
    if isinstance(value, Mapping):
        return value[step]
    if isinstance(value, Sequence):
        return value[index_of(step)]
    raise TypeError(step)


def check_length(name: str, length: int) -> None:
    """Raise for a text that would be too long, before it is built: nested functions can describe terabytes."""
    if length > MAX_WEIGHT:
        raise StackValidationFailed(f'"{name}": the result would be longer than {MAX_WEIGHT} characters')
