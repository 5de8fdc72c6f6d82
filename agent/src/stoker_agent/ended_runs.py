"""The output of ended runs on disk: truncated after the report, and released if the disk is full."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import List, Mapping, Sequence

from stoker_agent.active_run import ActiveRun
from stoker_agent.output_files import AFTERWARDS, tidy
from stoker_agent.runs import Runs


class EndedRuns:
    """``changed`` is the agent's condition, which protects ``active``, the runs in progress."""

    def __init__(self, runs: Runs, active: Mapping[str, ActiveRun], changed: threading.Condition) -> None:
        self._runs = runs
        self._active = active
        self._changed = changed
        #: Ended runs whose progress reporters still read their files.
        self._followed: List[ActiveRun] = []

    def add(self, run: ActiveRun) -> None:
        """Add a run that has ended. The caller holds ``changed``."""
        if run.is_followed:
            self._followed.append(run)

    def tidy(self) -> None:
        """Truncate the output files of completed runs as soon as their progress reporters have ended."""
        self._truncate(self._runs.list_folders("acknowledged"))

    def release(self, error: OSError) -> None:
        """Release output if ``error`` says that the disk is full: results and new runs are more important."""
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return
        with self._changed:
            followed = list(self._followed)
        for run in followed:
            run.shrink()
        self._truncate(self._runs.list_folders("acknowledged"), 0)
        self._truncate(self._runs.list_folders())

    def _truncate(self, folders: Sequence[Path], kept: int = AFTERWARDS) -> None:
        with self._changed:
            self._followed = [run for run in self._followed if run.is_followed]
            in_use = {*self._active, *(run.id for run in self._followed)}
        for folder in folders:
            if folder.name not in in_use:
                tidy(folder, kept)
