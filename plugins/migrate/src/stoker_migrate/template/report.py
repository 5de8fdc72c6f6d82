"""
What a migration has changed: the report, with an entry for each change and for each part that it cannot map, and the
parameters that parents of a template must pass, or no longer pass.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Change(StrEnum):
    """What happened to a part of a template."""

    REPLACED = "replaced"
    DROPPED = "dropped"
    MAPPED = "mapped"
    ADDED = "added"
    #: The part needs the user's attention.
    WARNING = "warning"


@dataclass(frozen=True)
class Entry:
    """One line of the report."""

    file: str
    #: Path of the part, such as ``resources.web``.
    part: str
    change: Change
    text: str


@dataclass
class Report:
    """All changes of a migration in the order in which they were made."""

    entries: list[Entry] = field(default_factory=list)

    def add(self, file: str, part: str, change: Change, text: str) -> None:
        """Add an entry, unless the report has it already."""
        entry = Entry(file, part, change, text)
        if entry not in self.entries:
            self.entries.append(entry)

    def rows(self) -> list[dict[str, str]]:
        """Return the entries as plain data."""
        return [{**asdict(entry), "change": entry.change.value} for entry in self.entries]

    @property
    def warnings(self) -> list[Entry]:
        """The entries that need the user's attention."""
        return [entry for entry in self.entries if entry.change is Change.WARNING]


@dataclass(frozen=True)
class NewParameter:
    """A parameter that a migration adds."""

    name: str
    description: str
    #: Whether the value is the name of an enrolled server, which members of a group do not share.
    is_server_name: bool = False
    #: Whether only outputs use the parameter, so that it has an empty default.
    is_optional: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the definition for the section ``parameters``."""
        default = {"default": ""} if self.is_optional else {}
        return {"type": "string", "description": self.description, **default}


@dataclass
class Interface:
    """The difference between the parameters of a template before and after its migration."""

    added: dict[str, NewParameter] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
