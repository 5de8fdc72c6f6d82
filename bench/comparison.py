"""Compares results with the last committed ones, and reports what costs more CPU."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What counts as worse: more than a quarter more CPU. Wall times depend on what else the machine does.
TOLERANCE = 1.25
#: Linux counts CPU in hundredths of a second: smaller differences of a total are no difference.
_RESOLUTION_S = 0.03

#: Case → figure → value.
Results = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Worse:
    """A figure that costs more CPU than in the committed result ``of``."""

    case: str
    figure: str
    before: float
    now: float
    of: str

    def __str__(self) -> str:
        change = round((self.now / self.before - 1) * 100)
        return f"{self.case}, {self.figure}: {self.now:g} instead of {self.before:g} (+{change} %, {self.of})"


def committed(folder: Path) -> list[Path]:
    """Return the committed results, newest first. Empty outside a git repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.json"], cwd=folder, capture_output=True, text=True, check=False
    )
    return sorted((folder / name for name in listed.stdout.split("\0") if name), reverse=True)


def find_worse(now: Results, files: Sequence[Path], database: str) -> Iterator[Worse]:
    """
    Yield the CPU figures that are worse than in the newest of these files with the same case and database.

    ``files`` are sorted, newest first. Files of before the database was recorded are those of SQLite.
    """
    earlier = [(path.stem, facts) for path in files if _database(facts := json.loads(path.read_text())) == database]
    for case, figures in now.items():
        for figure, value in figures.items():
            if "cpu" not in figure:
                continue
            found = ((of, facts["cases"].get("stoker", {}).get(case, {}).get(figure)) for of, facts in earlier)
            of, before = next(((of, value) for of, value in found if value), ("", None))
            if before is not None and value > before * TOLERANCE and not _is_noise(figure, value - before):
                yield Worse(case, figure, before, value, of)


def _database(facts: Mapping[str, Any]) -> str:
    return str(facts.get("database", "sqlite"))


def _is_noise(figure: str, difference: float) -> bool:
    return figure.endswith("cpu_s") and difference < _RESOLUTION_S
