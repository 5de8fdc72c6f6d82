"""
The state of runs on disk: one directory for the id of each derived config.

The existing files state how far a run is, so no state is ever overwritten:

    entry.json      the run has begun; written before the hook starts, so that no run executes twice
    result.json     the run has ended; the values to report
    acknowledged    the receiver accepted the result, or does not want it
    stopping        the agent is stopping the run
    stdout, stderr  the output, written while the hook runs

A separate file lists the ids of removed runs, because a source may list a run indefinitely.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Sequence

from stoker_agent.files import append, remove_tree, sync_folder, write

#: Directories of acknowledged runs that no document lists are kept this long, but only the newest of them.
_KEPT_SECONDS = 24 * 3600.0
_KEPT_RUNS = 200
#: Number of ids of removed runs at which the older half is dropped. A document lists a run only until a newer one.
_MOST_PAST = 20_000
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
#: The key for the source's name in an entry on disk. An entry without it came from Stoker's channel.
_SOURCE = "stoker_source"

Entry = Mapping[str, Any]
Values = Mapping[str, Any]


def source_of(entry: Entry) -> str:
    """Return the name of the source that listed the run, from its entry on disk."""
    return str(entry.get(_SOURCE) or "stoker")


class PastRuns:
    """The ids of removed runs, kept in the file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: The keys are the ids, oldest first.
        self._ids = dict.fromkeys(path.read_text().split() if path.exists() else ())

    def __contains__(self, id: str) -> bool:
        return id in self._ids

    def add(self, ids: Sequence[str], wanted: Collection[str] = ()) -> None:
        """Record the ids, and drop old ones that are not in ``wanted`` if there are too many. Raises OSError."""
        if not ids:
            return
        append(self._path, "".join(f"\n{id}" for id in ids).encode())
        self._ids.update(dict.fromkeys(ids))
        if len(self._ids) > _MOST_PAST:
            newest = list(self._ids)[-_MOST_PAST // 2 :]
            kept = dict.fromkeys([*(id for id in self._ids if id in wanted), *newest])
            write(self._path, "\n".join(kept).encode())
            self._ids = kept


class Runs:
    """The runs below the directory ``state``."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "runs"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._past = PastRuns(state / "past-runs")

    def folder(self, id: str) -> Path:
        """Return the directory of a run. Raises ValueError if ``id`` is not a valid id."""
        if not _ID.fullmatch(id):
            raise ValueError(f"{id!r} is no config's id")
        return self._folder / id

    def has_begun(self, id: str) -> bool:
        """Whether the run has begun at some time, and so must never begin again."""
        return self.folder(id).joinpath("entry.json").exists() or id in self._past

    def begin(self, entry: Entry, source: str) -> Path:
        """Store the entry in a new directory and return the directory. Raises OSError; the run has then not begun."""
        folder = self.folder(entry["id"])
        remove_tree(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(self._folder)
        write(folder / "entry.json", json.dumps({**entry, _SOURCE: source}).encode())
        return folder

    def adopt(self, deployed: Path) -> None:
        """
        Record the runs that heat-agents executed on this machine: one file per config, named as its id. Raises OSError.
        """
        ids = {path.stem for path in deployed.glob("*.json") if _ID.fullmatch(path.stem)}
        self._past.add([id for id in sorted(ids) if not self.has_begun(id)])

    def end(self, id: str, values: Values) -> None:
        """Store the result. Raises OSError."""
        write(self.folder(id) / "result.json", json.dumps(values).encode())

    def undo(self, id: str) -> None:
        """Remove the entry, so that the run may begin again. Raises OSError."""
        self.folder(id).joinpath("entry.json").unlink()
        sync_folder(self.folder(id))

    def acknowledge(self, id: str) -> None:
        """Record that the result was reported. Raises OSError."""
        write(self.folder(id) / "acknowledged", b"")

    def entry(self, id: str) -> Dict[str, Any]:
        """Return the stored entry. Raises OSError or ValueError."""
        entry: Dict[str, Any] = json.loads(self.folder(id).joinpath("entry.json").read_text())
        return entry

    def result(self, id: str) -> Dict[str, Any]:
        """Return the stored result; an unreadable one becomes a failure. Raises OSError."""
        try:
            result: Dict[str, Any] = json.loads(self.folder(id).joinpath("result.json").read_text())
        except ValueError as error:
            return {"deploy_status_reason": f"The result cannot be read: {error}", "deploy_status_code": 1}
        return result

    def list_unreported(self) -> List[str]:
        """Return the ids of ended runs without an acknowledgment, oldest first."""
        folders = [folder for folder in self._list_with("result.json") if not folder.joinpath("acknowledged").exists()]
        return [
            folder.name for folder in sorted(folders, key=lambda folder: folder.joinpath("result.json").stat().st_mtime)
        ]

    def list_interrupted(self) -> List[str]:
        """Return the ids of runs that began and did not end. Only correct while no run is active."""
        ends = ("result.json", "acknowledged")
        return [
            folder.name for folder in self._list_with("entry.json") if not any((folder / end).exists() for end in ends)
        ]

    def forget_all_but(self, wanted: Collection[str]) -> None:
        """
        Remove acknowledged runs that are not in ``wanted``, except the newest of the last day.

        Their ids remain known. Raises OSError.
        """
        ends = [
            (folder.joinpath("acknowledged").stat().st_mtime, folder)
            for folder in self._list_with("acknowledged")
            if folder.name not in wanted
        ]
        long_ago = time.time() - _KEPT_SECONDS
        newest_first = sorted(ends, reverse=True)
        old = [folder for place, (ended, folder) in enumerate(newest_first) if ended < long_ago or place >= _KEPT_RUNS]
        self._past.add([folder.name for folder in old], wanted)
        for folder in old:
            # The acknowledgment goes last: a partly removed run must not look unreported.
            for name in ("entry.json", "result.json"):
                folder.joinpath(name).unlink(missing_ok=True)
            remove_tree(folder)

    def list_acknowledged(self) -> List[Path]:
        """Return the directories of runs with an acknowledgment."""
        return self._list_with("acknowledged")

    def _list_with(self, name: str) -> List[Path]:
        return [path.parent for path in self._folder.glob(f"*/{name}")]
