"""
The state of runs on disk: one directory for the id of each derived config.

The existing files state how far a run is, so no state is ever overwritten:

    entry.json      the run has begun; written before the hook starts, so that no run executes twice
    result.json     the run has ended; the values to report
    acknowledged    the receiver accepted the result, or does not want it
    interruptions   how often the run was interrupted, if it runs again after an interruption
    stopping        the agent is stopping the run
    stdout, stderr  the output, written while the hook runs
    cwd, tmp        the directory in which the processes start, and their private /tmp; removed when the run ends

A separate file lists the ids of removed runs, because a source may list a run indefinitely.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Set

from stoker_agent.files import append, read_map, remove_tree, sync_folder, write

#: Directories of acknowledged runs that no document lists are kept this long, but only the newest of them.
_KEPT_SECONDS = 24 * 3600.0
_KEPT_RUNS = 200
#: Number of ids of removed runs at which the older half is dropped. A document lists a run only until a newer one.
_MOST_PAST = 20_000
#: A file in a run's directory, and the number at which the run fails: a script may end its agent, or the machine.
_INTERRUPTIONS, _MOST_INTERRUPTIONS = "interruptions", 5
#: Subdirectories of a run's directory that only the run's processes need.
CWD, TMP = "cwd", "tmp"
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
#: The key for the source's name in an entry. An entry without it came from Stoker's channel.
_SOURCE = "stoker_source"

Entry = Mapping[str, Any]
Values = Mapping[str, Any]


def count_interruptions(folder: Path) -> int:
    """Return how often the run in ``folder``, which runs again after an interruption, was interrupted."""
    try:
        return int(folder.joinpath(_INTERRUPTIONS).read_text())
    except (OSError, ValueError):
        return 0


def is_id(value: Any) -> bool:
    """Whether ``value`` can be the id of a run."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def with_source(entry: Entry, source: str) -> Dict[str, Any]:
    """Return a document's entry with the name of the source that listed it."""
    return {**entry, _SOURCE: source}


def source_of(entry: Entry) -> str:
    """Return the name of the source that listed the run."""
    return str(entry.get(_SOURCE) or "stoker")


def without_source(entry: Entry) -> Dict[str, Any]:
    """Return the entry as the document has it, for hooks."""
    return {name: value for name, value in entry.items() if name != _SOURCE}


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
        with contextlib.suppress(OSError):  # ``begin`` raises the error
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._past = PastRuns(state / "past-runs")
        #: Ids of the runs that this process has begun. A script may delete the files below ``state``.
        self._begun: Set[str] = set()

    def folder(self, id: str) -> Path:
        """Return the directory of a run. Raises ValueError if ``id`` is not a valid id."""
        if not is_id(id):
            raise ValueError(f"{id!r} is no config's id")
        return self._folder / id

    def has_begun(self, id: str) -> bool:
        """Whether the run has begun at some time, and so must never begin again."""
        folder = self.folder(id)
        names = ("entry.json", "acknowledged")
        return id in self._begun or id in self._past or any((folder / name).exists() for name in names)

    def begin(self, entry: Entry) -> Path:
        """Store the entry in a new directory and return the directory. Raises OSError; the run has then not begun."""
        folder = self.folder(entry["id"])
        interruptions = count_interruptions(folder)
        remove_tree(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(self._folder)
        if interruptions:
            write(folder / _INTERRUPTIONS, str(interruptions).encode())
        write(folder / "entry.json", json.dumps(entry).encode())
        self._begun.add(entry["id"])
        return folder

    def remember(self, id: str) -> None:
        """Record in memory that the run must not begin again, because the disk is full."""
        self._begun.add(id)

    def adopt(self, deployed: Path) -> None:
        """
        Record the runs that heat-agents executed on this machine: one file per config, named as its id. Raises OSError.
        """
        ids = {path.stem for path in deployed.glob("*.json") if _ID.fullmatch(path.stem)}
        self._past.add([id for id in sorted(ids) if not self.has_begun(id)])

    def end(self, entry: Entry, values: Values) -> None:
        """
        Store the result, and remove what only the run's processes needed. Raises OSError.

        A script may have deleted the stored ``entry`` meanwhile.
        """
        folder = self.folder(entry["id"])
        for name in (CWD, TMP):
            if folder.joinpath(name).exists():
                remove_tree(folder / name)
        if not folder.joinpath("entry.json").exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(folder / "entry.json", json.dumps(entry).encode())
        write(folder / "result.json", json.dumps(values).encode())

    def undo(self, id: str) -> bool:
        """
        Count an interruption of the run and remove its entry, so that it may begin again.

        Returns False, and does not remove the entry, after the last permitted interruption or without write access.
        """
        count = count_interruptions(self.folder(id)) + 1
        try:
            write(self.folder(id) / _INTERRUPTIONS, str(count).encode())
            if count >= _MOST_INTERRUPTIONS:
                return False
            self.folder(id).joinpath("entry.json").unlink()
            sync_folder(self.folder(id))
        except OSError:
            return False
        self._begun.discard(id)
        return True

    def acknowledge(self, id: str) -> None:
        """Record that the result was reported. Raises OSError."""
        self.folder(id).mkdir(mode=0o700, parents=True, exist_ok=True)
        write(self.folder(id) / "acknowledged", b"")

    def entry(self, id: str) -> Dict[str, Any]:
        """Return the stored entry. One that cannot be read, or is gone, has only the id."""
        return {**read_map(self.folder(id) / "entry.json"), "id": id}

    def result(self, id: str) -> Dict[str, Any]:
        """Return the stored result; an unreadable one becomes a failure. Raises OSError."""
        try:
            result: Dict[str, Any] = json.loads(self.folder(id).joinpath("result.json").read_text())
        except ValueError as error:
            return {"deploy_status_reason": f"The result cannot be read: {error}", "deploy_status_code": 1}
        return result

    def list_unreported(self) -> List[str]:
        """Return the ids of ended runs without an acknowledgment, oldest first."""
        folders = [
            folder for folder in self.list_folders("result.json") if not folder.joinpath("acknowledged").exists()
        ]
        return [
            folder.name for folder in sorted(folders, key=lambda folder: folder.joinpath("result.json").stat().st_mtime)
        ]

    def list_interrupted(self) -> List[str]:
        """Return the ids of runs that began and did not end. Only correct while no run is active."""
        ends = ("result.json", "acknowledged")
        return [
            folder.name
            for folder in self.list_folders("entry.json")
            if not any((folder / end).exists() for end in ends)
        ]

    def forget_all_but(self, wanted: Collection[str]) -> None:
        """
        Remove acknowledged runs that are not in ``wanted``, except the newest of the last day.

        Their ids remain known on disk. Raises OSError.
        """
        self._begun.intersection_update(wanted)
        ends = [
            (folder.joinpath("acknowledged").stat().st_mtime, folder)
            for folder in self.list_folders("acknowledged")
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

    def list_folders(self, having: Optional[str] = None) -> List[Path]:
        """Return the directories of all runs, or of those with a file ``having``."""
        return [path.parent for path in self._folder.glob(f"*/{having}")] if having else list(self._folder.glob("*"))
