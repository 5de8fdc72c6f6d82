"""
Places in a template (``resources.a.properties.b[0]``), problems there, their collection, and the checks of types that
all sections share.

A flaw becomes the user's error when the template's text is available, which gives the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stoker.hot.words import clip, kind_of
from stoker.hot.yaml_text import lines
from stoker.model.errors import StackValidationFailed, StokerError

Path = tuple[str | int, ...]


def dotted_path(path: Sequence[str | int]) -> str:
    """A path in the usual notation."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def heat_path(path: Sequence[str | int]) -> str:
    """A path in Heat's notation, where names that are numbers are in brackets, too."""
    parts = (f"[{part}]" if isinstance(part, int) or part.isdigit() else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


_BEGINS_WITH_PLACE = re.compile(r"(resources|outputs|parameters|conditions)\.")
#: Maximum number of errors in one report. Each repeats a part of the input, and more would not help the reader.
MOST = 50
#: Heat's separator in errors that its engine has passed to its API, ...
JOINT = ": : "
#: ... and in other errors, those of ``validate``.
JOINT_OF_VALIDATE = ": "


class Flaw(Exception):
    """A problem in a template. ``error`` and ``place`` precede the sentence as in Heat."""

    def __init__(
        self,
        sentence: str,
        path: Path = (),
        kind: type[StokerError] = StackValidationFailed,
        *,
        error: str = "",
        place: str = "",
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        #: The path in the template.
        self.path = path
        self.kind = kind
        self.place = place
        self._error = error

    def message(self, joint: str = JOINT) -> str:
        """The error message without the line."""
        return joint.join(filter(None, (self._error, self.place, clip(self.sentence))))

    def within(self, place: str, path: Path) -> Flaw:
        """Convert a flaw of a nested template to a flaw of its parent, whose resource is at ``path``."""
        if self.place:
            return Flaw(self.sentence, path, self.kind, error=self._error, place=f"{place}.{self.place}")
        joint = "." if _BEGINS_WITH_PLACE.match(self.sentence) else ": "
        return Flaw(f"{place}{joint}{self.sentence}", path, self.kind)

    def error(self, source: str | Mapping[str, Any] | None) -> StokerError:
        """The user's error, with the line if ``source`` is text."""
        alone = Flaws(source)
        alone.add(self)
        return alone.error()


def flaw(path: Path, text: str, kind: type[StokerError] = StackValidationFailed) -> Flaw:
    """A flaw whose message begins with its path."""
    return Flaw(f"{dotted_path(path)}: {text}", path, kind)


class Flaws:
    """Collects the flaws of a template, so that its author sees all of them at once."""

    def __init__(self, source: Any = None, joint: str = JOINT) -> None:
        """``source``: the template; if it is text, errors name the line."""
        self._source = source
        self._joint = joint
        self._flaws: list[Flaw] = []
        #: Maps a path in the HOT document to the path in the source.
        self.to_source_path: Callable[[Path], Path] = _as_it_is

    def __bool__(self) -> bool:
        return bool(self._flaws)

    def __iter__(self) -> Iterator[Flaw]:
        return iter(self._flaws)

    def add(self, item: Flaw) -> None:
        """Add a flaw. Raises the combined error when the maximum number is reached."""
        self._flaws.append(item)
        if len(self._flaws) >= MOST:
            self.raise_any()

    @contextmanager
    def collect(self) -> Iterator[None]:
        """A context that adds a raised flaw and then continues after the block."""
        try:
            yield
        except Flaw as item:
            self.add(item)

    def raise_any(self) -> None:
        """Raise one error with all flaws, if there are any."""
        if self._flaws:
            raise self.error() from None

    def error(self) -> StokerError:
        """Return one error with a line for each flaw. It has the type of the flaws if they share one."""
        kinds = {flaw.kind for flaw in self._flaws}
        kind = kinds.pop() if len(kinds) == 1 else StackValidationFailed
        return kind("\n".join(self.describe(self._flaws)))

    def describe(self, items: list[Flaw]) -> list[str]:
        """The messages of these flaws of the template, in the order of the text."""
        paths = [self.to_source_path(flaw.path) for flaw in items]
        line_of = lines(self._source, paths) if isinstance(self._source, str) else dict[Path, int]()
        by_line = sorted(zip(items, paths, strict=True), key=lambda item: line_of.get(item[1], 0))
        messages = (
            flaw.message(self._joint) + (f" (line {line_of[path]})" if path in line_of else "")
            for flaw, path in by_line
        )
        return list(dict.fromkeys(messages))


def _as_it_is(path: Path) -> Path:
    return path


def map_at(value: Any, path: Path) -> dict[str, Any]:
    """Return ``value`` if it is a map."""
    if not isinstance(value, dict):
        raise flaw(path, f"a map is needed, not {kind_of(value)}")
    return value


def optional_map(data: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    """The map under ``key``; an empty map if the value is missing or null."""
    value = data.get(key)
    return {} if value is None else map_at(value, (*path, key))


def list_at(value: Any, path: Path) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise flaw(path, f"a list is needed, not {kind_of(value)}")
    return value


def scalar_text(value: Any, path: Path, default: str = "") -> str:
    """Descriptive text: numbers and booleans are converted, and null becomes the default."""
    if value is None:
        return default
    if isinstance(value, (dict, list)):
        raise flaw(path, f"text is needed, not {kind_of(value)}")
    return str(value)
