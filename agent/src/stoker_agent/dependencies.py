"""The order of runs: which runs wait for others of the same server, by the option ``depends_on`` of their configs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from stoker_agent.active_run import identify_deployment
from stoker_agent.files import read_map, write_json
from stoker_agent.programs import inputs, option
from stoker_agent.runs import Runs
from stoker_agent.termination import WITHDRAWN, was_stopping

_log = logging.getLogger("stoker-agent")
Entry = Mapping[str, Any]


class Dependencies:
    """
    The dependencies of pending runs, kept in the file ``path``.

    A document no longer lists a run whose result was accepted. Therefore the names are resolved to ids while both runs
    are in the document, and the ids survive a restart of the agent.
    """

    def __init__(self, path: Path, runs: Runs) -> None:
        self._path = path
        self._runs = runs
        #: The id of a waiting run → the id of a run that it waits for → the name of that run.
        self._waits: Dict[str, Dict[str, str]] = read_map(path)
        self._listed: Mapping[str, Entry] = {}

    def update(self, entries: Mapping[str, Entry]) -> None:
        """Resolve the names of a new document, by id."""
        # only runs that apply a config are in an order
        entries = {id: entry for id, entry in entries.items() if not entry.get("mode")}
        self._listed = entries
        waits: Dict[str, Dict[str, str]] = {}
        for id, entry in entries.items():
            names = _names(entry)
            if names:
                matches = {other: name for other in entries for name in names if _has_name(entries[other], name, entry)}
                waits[id] = {**self._drop_superseded(self._waits.get(id, {}), entries), **matches}
        if waits != self._waits:
            self._waits = waits
            self._store()

    def _drop_superseded(self, waits: Mapping[str, str], entries: Mapping[str, Entry]) -> Dict[str, str]:
        """Return ``waits`` without runs whose deployment has a newer run in the document, which is awaited instead."""
        absent = [id for id in waits if id not in entries]
        if not absent:
            return dict(waits)
        listed = {member for entry in entries.values() for member in identify_deployment(entry)}
        # of a run that has not begun, or ended long ago, there is no entry
        superseded = {id for id in absent if not listed.isdisjoint(identify_deployment(self._runs.entry(id)))}
        return {id: name for id, name in waits.items() if id not in superseded}

    def find_failure(self, id: str) -> Optional[str]:
        """Return why the run must fail before it begins: a run on which it depends has failed, or depends on it."""
        cycle = self._find_cycle(id, id, [id])
        if cycle is not None:
            return f"depends_on forms a cycle: {' → '.join(self._name(each) for each in cycle)}"
        failed = [name for other, name in self._waits.get(id, {}).items() if self._has_failed(other)]
        return f"dependency {failed[0]} failed" if failed else None

    def is_waiting(self, id: str) -> bool:
        """Return whether the run waits for another one."""
        return any(self._is_pending(other) for other in self._waits.get(id, ())) and self.find_failure(id) is None

    def _is_pending(self, id: str) -> bool:
        """Whether the run has not ended. A run that was withdrawn before it began is not awaited."""
        if self._runs.has_begun(id):
            folder = self._runs.folder(id)  # is gone some time after the end of the run
            return folder.joinpath("entry.json").exists() and not folder.joinpath("result.json").exists()
        return id in self._listed

    def _has_failed(self, id: str) -> bool:
        try:
            values, entry = self._runs.result(id), self._runs.entry(id)
        except OSError:  # not ended, or so long ago that its files are gone
            return False
        if was_stopping(self._runs.folder(id)) == WITHDRAWN:
            return False
        declared = entry.get("outputs")
        outputs = [output for output in declared if isinstance(output, dict)] if isinstance(declared, list) else []
        errors = [output.get("name") for output in outputs if output.get("error_output") is True]
        code = str(values.get("deploy_status_code") or 0)
        return code != "0" or any(values.get(str(name)) for name in errors)

    def _find_cycle(self, start: str, target: str, path: List[str]) -> Optional[List[str]]:
        for other in self._waits.get(start, ()):
            if other == target:
                return [*path, target]
            if other not in path and self._is_pending(other):
                cycle = self._find_cycle(other, target, [*path, other])
                if cycle is not None:
                    return cycle
        return None

    def _name(self, id: str) -> str:
        entry = self._listed.get(id, {})
        return str(inputs(entry).get("deploy_resource_name") or entry.get("name") or id)

    def _store(self) -> None:
        try:
            write_json(self._path, self._waits)
        except OSError as error:  # only a restart of the agent needs the file
            _log.error("dependencies.not_stored: cannot store the order of runs: %s", error)


def _names(entry: Entry) -> Sequence[str]:
    names = option(entry, "depends_on")
    if isinstance(names, str):
        return [names]
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else ()


def _has_name(entry: Entry, name: str, waiting: Entry) -> bool:
    """Whether a run has the name: its own, or that of its resource in the stack of the waiting run."""
    if entry.get("name") == name:
        return True
    own, others = inputs(entry), inputs(waiting)
    stack = own.get("deploy_stack_id")
    return stack is not None and stack == others.get("deploy_stack_id") and own.get("deploy_resource_name") == name
