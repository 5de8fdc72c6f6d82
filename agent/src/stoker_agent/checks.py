"""
Checks of this server: whether it still is as its deployments left it.

Stoker's document lists the configs to check. A thread, which exists only while there are any, checks them one after
another, each at its own interval, and reports a result only if it differs from the last one, or if Stoker requested the
check. Results are not stored: after a restart, the agent checks everything again, and Stoker ignores repetitions.
"""

from __future__ import annotations

import logging
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from stoker_agent import hook_contract
from stoker_agent.active_run import ActiveRun
from stoker_agent.config import Paths
from stoker_agent.execute import Execution
from stoker_agent.launch import end_remaining_processes
from stoker_agent.outbox import Outbox
from stoker_agent.runs import is_id
from stoker_agent.termination import WITHDRAWN, Control

_log = logging.getLogger("stoker-agent")
Finding = Mapping[str, Any]
IN_SYNC, DRIFTED, UNKNOWN, UNSUPPORTED = "IN_SYNC", "DRIFTED", "UNKNOWN", "UNSUPPORTED"
#: A check ends after this time at the latest, so that a hook that hangs does not prevent all other checks.
_LONGEST_SECONDS = 600.0
_LONGEST_REASON = 1000
#: The pause before a check of a deployment whose run is in progress.
_BUSY_SECONDS = 1.0


class _Watch:
    """A deployment to check: the document's entry, and what the server knows."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        #: When the next check is due, by the monotonic clock; None: not before the next request.
        self.due: Optional[float] = 0.0
        #: The last finding that the server has, and the request that it answered.
        self.reported: Optional[Finding] = None
        self.answered: Any = None

    def renew(self, entry: Mapping[str, Any]) -> None:
        """Take the entry of a newer document. A new run, a new request and a new interval need a check now."""
        before, self.entry = self.entry, entry
        if entry["id"] != before["id"]:
            self.reported = None
        is_requested = entry.get("requested") not in (None, before.get("requested"))
        if is_requested or any(entry.get(key) != before.get(key) for key in ("id", "interval")):
            self.due = 0.0

    def plan_next(self) -> None:
        """Set the time of the next check, with a random component that spreads the checks of many servers."""
        interval = self.entry.get("interval")
        if isinstance(interval, (int, float)) and interval > 0:
            self.due = time.monotonic() + interval * random.uniform(0.9, 1.1)  # noqa: S311 — no secret
        else:
            self.due = None

    def record(self, finding: Finding, requested: Any) -> bool:
        """Record a finding. Return whether the server does not know it yet, or has requested it."""
        if finding == self.reported and requested in (None, self.answered):
            return False
        self.reported, self.answered = finding, requested
        return True


class Checks:
    """
    The checks of one agent.

    ``outbox`` takes the reports. ``active`` are the runs in progress: no check of a deployment starts during its run.
    """

    def __init__(self, outbox: Outbox, paths: Paths, active: Mapping[str, ActiveRun]) -> None:
        self._outbox = outbox
        self._paths = paths
        self._folder = paths.state / "checks"
        self._runs = active
        self._changed = threading.Condition()
        self._watches: Dict[str, _Watch] = {}
        self._thread: Optional[threading.Thread] = None
        #: The entry and the control of the check in progress.
        self._active: Optional[Mapping[str, Any]] = None
        self._control = Control()

    def recover(self) -> None:
        """End the checks that an earlier agent process left behind."""
        for folder in self._folder.glob("*"):
            end_remaining_processes(folder)
            shutil.rmtree(str(folder), ignore_errors=True)

    def update(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """
        Take the checks of a new document.

        A check in progress that the document no longer lists is stopped, because a run of its deployment starts, for
        example.
        """
        listed = {entry["deployment_id"]: entry for entry in entries if _is_valid(entry)}
        with self._changed:
            for id in [id for id in self._watches if id not in listed]:
                del self._watches[id]
                self._outbox.drop(_key(id))
            for id, entry in listed.items():
                watch = self._watches.setdefault(id, _Watch(entry))
                if entry["id"] != watch.entry["id"]:
                    self._outbox.drop(_key(id))
                watch.renew(entry)
            active = self._active
            if active is not None and listed.get(active["deployment_id"], {}).get("id") != active["id"]:
                self._control.stop(WITHDRAWN)
            if listed and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checks", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                watch = self._next()
                if watch is None:
                    self._thread = None
                    return
            try:
                self._check(watch)
            except Exception:  # no content of a document may end the thread
                _log.exception("check.failed: a check failed")
                time.sleep(_BUSY_SECONDS)

    def _next(self) -> Optional[_Watch]:
        """Wait until a check is due. Return its watch, or None if there are no checks. Sets the next time."""
        while self._watches:
            now = time.monotonic()
            planned = [watch for watch in self._watches.values() if watch.due is not None]
            first = min(planned, key=lambda watch: watch.due or 0.0, default=None)
            seconds = None if first is None else (first.due or 0.0) - now
            if first is None or seconds is None or seconds > 0:
                self._changed.wait(seconds)
            elif self._is_running(first.entry["deployment_id"]):
                first.due = now + _BUSY_SECONDS
            else:
                first.plan_next()
                return first
        return None

    def _is_running(self, id: str) -> bool:
        # a copy, because other threads change the runs
        return any(run.entry.get("deployment_id") == id for run in list(self._runs.values()))

    def _check(self, watch: _Watch) -> None:
        """Check one deployment, and report the finding if the server does not know it."""
        with self._changed:
            entry, control = watch.entry, Control()
            self._active, self._control = entry, control
        folder = self._folder / entry["deployment_id"]
        try:
            finding = _find(entry, self._paths, folder, control)
        finally:
            shutil.rmtree(str(folder), ignore_errors=True)
            with self._changed:
                self._active = None
        with self._changed:
            is_current = self._watches.get(entry["deployment_id"]) is watch and watch.entry["id"] == entry["id"]
            if is_current and control.why != WITHDRAWN:
                id, requested = entry["deployment_id"], entry.get("requested")
                if watch.record(finding, requested):
                    self._outbox.post(_key(id), "POST", f"/agent/v1/checks/{id}", {**finding, "requested": requested})
                    _log.info("check.ended: deployment %s is %s", id, finding["state"])
                if watch.due:  # no request has come during the check
                    watch.plan_next()


def _key(id: str) -> str:
    return f"check of {id}"


def _is_valid(entry: Mapping[str, Any]) -> bool:
    return is_id(entry.get("id")) and is_id(entry.get("deployment_id"))


def _find(entry: Mapping[str, Any], paths: Paths, folder: Path, control: Control) -> Finding:
    """Run the hook in the mode ``check`` and return what it finds, as the report has it."""
    shutil.rmtree(str(folder), ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    entry = {**entry, "mode": "check"}
    execution = Execution(entry, paths.variables, folder, control, longest=_LONGEST_SECONDS)
    values = execution.execute(paths.hooks)
    code, is_changed = values.get("deploy_status_code"), values.get("deploy_changed")
    changes, finding = values.get("deploy_changes"), {"config_id": entry["id"], "reason": "", "changes": ()}
    if str(code) != "0":
        lines = str(values.get("deploy_stderr") or "").strip().splitlines()
        reason = values.get("deploy_status_reason") or (lines[-1] if lines else f"the check ended with {code}")
        state = UNSUPPORTED if str(code) == str(hook_contract.UNSUPPORTED) else UNKNOWN
        return {**finding, "state": state, "reason": str(reason)[:_LONGEST_REASON]}
    if not isinstance(is_changed, bool):
        return {**finding, "state": UNKNOWN, "reason": "the hook's check does not report deploy_changed"}
    if not is_changed:
        return {**finding, "state": IN_SYNC}
    return {**finding, "state": DRIFTED, "changes": changes if isinstance(changes, list) else ()}
