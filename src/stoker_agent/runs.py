"""
What is known of runs, on disk: a folder for each derived config's id.

Which files are there says how far the run is, so that no state is ever rewritten:

    entry.json      begun: written before the hook starts, so that nothing runs twice
    result.json     ended: what is to be reported
    acknowledged    the server has it, or wants it no more
    stopping        it is not wanted any more, and is being ended
    stdout, stderr  what the hook wrote, while it writes

The ids of runs whose folders are gone are in a file of their own: another source may list them for ever.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Sequence

from stoker_agent.files import append, sync_folder, write

#: Folders of runs that nobody asks for any more are kept this long.
_KEPT_SECONDS = 24 * 3600.0
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
#: In an entry on disk: which source told of it. Without it, Stoker's own channel.
_SOURCE = "stoker_source"

Entry = Mapping[str, Any]
Values = Mapping[str, Any]


def source_of(entry: Entry) -> str:
    """The source that told of a run, from its entry on disk."""
    return str(entry.get(_SOURCE) or "stoker")


class Runs:
    def __init__(self, state: Path) -> None:
        self._folder = state / "runs"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._past = state / "past-runs"
        self._forgotten = set(self._past.read_text().split()) if self._past.exists() else set()

    def folder(self, id: str) -> Path:
        if not _ID.fullmatch(id):
            raise ValueError(f"{id!r} is no config's id")
        return self._folder / id

    def known(self, id: str) -> bool:
        """Begun at least, and so never to be begun again."""
        return self.folder(id).joinpath("entry.json").exists() or id in self._forgotten

    def begin(self, entry: Entry, source: str) -> Path:
        """The run's folder, empty but for the entry. Raises OSError, and then the run has not begun."""
        folder = self.folder(entry["id"])
        shutil.rmtree(str(folder), ignore_errors=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(self._folder)
        write(folder / "entry.json", json.dumps({**entry, _SOURCE: source}).encode())
        return folder

    def adopt(self, deployed: Path) -> None:
        """What heat-agents ran on this machine has run: a file for each, named as its config's id. Raises OSError."""
        found = {path.stem for path in deployed.glob("*.json") if _ID.fullmatch(path.stem)}
        self._put_past([id for id in sorted(found) if not self.known(id)])

    def end(self, id: str, values: Values) -> None:
        """Raises OSError."""
        write(self.folder(id) / "result.json", json.dumps(values).encode())

    def undo(self, id: str) -> None:
        """As if it had never begun. Raises OSError."""
        self.folder(id).joinpath("entry.json").unlink()
        sync_folder(self.folder(id))

    def acknowledge(self, id: str) -> None:
        """Raises OSError."""
        write(self.folder(id) / "acknowledged", b"")

    def entry(self, id: str) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(self.folder(id).joinpath("entry.json").read_text())
        return found

    def result(self, id: str) -> Dict[str, Any]:
        """What a damaged disk made unreadable is a failure. Raises OSError."""
        try:
            found: Dict[str, Any] = json.loads(self.folder(id).joinpath("result.json").read_text())
        except ValueError as error:
            return {"deploy_status_reason": f"The result cannot be read: {error}", "deploy_status_code": 1}
        return found

    def unreported(self) -> List[str]:
        """Ended, and not known to have arrived; oldest first."""
        found = [each for each in self._each("result.json") if not each.joinpath("acknowledged").exists()]
        return [each.name for each in sorted(found, key=lambda each: each.joinpath("result.json").stat().st_mtime)]

    def interrupted(self) -> List[str]:
        """Begun and never ended. Only sure while nothing runs."""
        ends = ("result.json", "acknowledged")
        return [each.name for each in self._each("entry.json") if not any((each / end).exists() for end in ends)]

    def forget_all_but(self, wanted: Collection[str]) -> None:
        """Drop what is done with and nobody asks for any more; that it ran stays known. Raises OSError."""
        long_ago = time.time() - _KEPT_SECONDS
        old = [
            each
            for each in self._each("acknowledged")
            if each.name not in wanted and each.joinpath("acknowledged").stat().st_mtime < long_ago
        ]
        if not old:
            return
        self._put_past([each.name for each in old])
        for each in old:
            # Last what says that it is done with: half of a run must not look like one to report.
            for name in ("entry.json", "result.json"):
                each.joinpath(name).unlink(missing_ok=True)
            shutil.rmtree(str(each), ignore_errors=True)

    def done(self) -> List[Path]:
        """Folders of runs whose results somebody has."""
        return self._each("acknowledged")

    def _put_past(self, ids: Sequence[str]) -> None:
        if ids:
            append(self._past, "".join(f"\n{id}" for id in ids).encode())
            self._forgotten.update(ids)

    def _each(self, name: str) -> List[Path]:
        return [path.parent for path in self._folder.glob(f"*/{name}")]
