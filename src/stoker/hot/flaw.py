"""Something wrong at a place of a template, before the line of that place is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.hot.locate import at
from stoker.hot.paths import Path, dotted
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed, StokerError


class Flaw(Exception):
    """Stays inside this room: whoever holds the source turns it into the user's error."""

    def __init__(self, sentence: str, path: Path = (), kind: type[StokerError] = StackValidationFailed) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.path = path
        self.kind = kind

    def error(self, source: str | Mapping[str, Any] | None) -> StokerError:
        return self.kind(clip(self.sentence) + at(source, self.path))


def flaw(path: Path, text: str, kind: type[StokerError] = StackValidationFailed) -> Flaw:
    """A flaw whose sentence begins with its place."""
    return Flaw(f"{dotted(path)}: {text}", path, kind)
