"""The report of a migration: one entry for each change, and for each part that the migration cannot map."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum


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
