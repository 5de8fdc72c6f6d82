"""
A run that reports each change, remembers how everything was before (``hook_memory``), and reverts it.

``stoker_agent.steps`` has the changes. In the modes ``check`` and ``preview``, changes are only reported.
"""

from __future__ import annotations

import pwd
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence

from stoker_agent.hook_contract import DRY_MODES, Change, Commands, HookError, Result
from stoker_agent.hook_memory import Item, Memory, describe_path, effect_of_restoring, restore_path
from stoker_agent.packages import QUIET, Manager, find_manager
from stoker_agent.units import Unit

#: The config cannot do its work; the text says why and what helps.
Failure = HookError


class ReversibleRun(Commands):
    """One run in the mode ``mode``. ``journal`` is the memory of the run's deployment."""

    def __init__(self, mode: str, journal: Memory) -> None:
        self.is_dry = mode in DRY_MODES
        self.changes: List[Change] = []
        self.journal = journal

    def change(self, item: str, diff: str = "") -> bool:
        """Report that an item changes. Returns whether the step has to change it now, which it has not in a dry run."""
        self.changes.append(Change(item, diff=diff))
        print(("would change " if self.is_dry else "") + item + (": " + diff if diff and "\n" not in diff else ""))
        if "\n" in diff:
            print(diff)
        return not self.is_dry

    def result(self, **outputs: Any) -> Dict[str, Any]:
        """Return the outputs with what has changed."""
        values = {name: value for name, value in outputs.items() if value is not None}
        report = Result(values=values, changed=bool(self.changes), changes=self.changes).to_report()
        report.setdefault("deploy_changes", [])
        del report["deploy_status_code"]
        return report

    def undo(self, keep: Collection[str] = ()) -> None:
        """
        Revert what earlier runs changed, the last change first, except items whose names are in ``keep``.

        An item that another deployment uses is left to it, and the file of a unit with the unit. Units stop before
        everything else is restored, and start after it, with the files that they had.
        """
        items = [item for item in reversed(self.journal.list()) if item.name not in keep]
        own = [item for item in items if self._is_last_user(item)]
        used_files = {str(Unit(self, item.name).file) for item in items if item.kind == "service" and item not in own}
        units = [item for item in own if item.kind == "service"]
        restored = set()
        for item in units:
            if self._effect(item) and self.change(item.name, "restored"):
                Unit(self, item.name).switch_off(item.before)
        packages = [item for item in own if item.kind == "package"]
        for item in own:
            if item.kind == "service":
                continue
            if packages and item is packages[0]:
                self._undo_packages(packages)
            effect = "" if item.name in used_files else self._effect(item)
            if effect and self.change(item.name, effect):
                self._revert(item)
                restored.add(item.name)
            if not self.is_dry:
                self.journal.forget(item)
        for item in () if self.is_dry else units:
            unit = Unit(self, item.name)
            unit.switch_on(item.before, has_new_file=str(unit.file) in restored)
            self.journal.forget(item)

    def _call_manager(self, manager: Manager, argv: Sequence[str]) -> int:
        """Call the package manager, report its progress, and return its exit code."""

        def report(line: bytes) -> bool:
            progress = manager.progress(line)
            if progress is not None:
                done, total, name = progress
                percent = 100 * done // total if done <= total else None
                self.report_progress(percent, f"package {done} of {total}: {name}")
            return True

        return self.call(argv, QUIET, passes=report)

    def _report_packages(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Add the packages whose versions differ to the changes."""
        for name in sorted({*before, *after}):
            versions = before.get(name, "absent"), after.get(name, "absent")
            if versions[0] != versions[1]:
                self.change(name, " → ".join(versions))

    def _undo_packages(self, items: Sequence[Item]) -> None:
        """Remove the packages that the deployment has installed, and dependencies that no other package needs."""
        manager = find_manager()
        before = manager.installed(self)
        added = [item for item in items if item.name in before and not item.before["is_installed"]]
        names = [item.name for item in added if not item.before.get("is_dependency")]
        if self.is_dry:
            for name in names:
                self.change(name, f"{before[name]} → absent")
        elif names:
            dependencies = [item.name for item in added if item.before.get("is_dependency")]
            argv = [*manager.remove, *manager.removable(self, names, dependencies)]  # `purge` would delete databases
            code = self._call_manager(manager, argv)
            self._report_packages(before, manager.installed(self))
            if code:
                raise failure_of(argv, code)

    def _is_last_user(self, item: Item) -> bool:
        """Whether this deployment has to undo its change of an item. A dry run hands no item over."""
        return not self.journal.is_used(item.kind, item.name) if self.is_dry else self.journal.release(item)

    def _remember(self, kind: str, name: str, **before: Any) -> None:
        """Remember how an item is before this run changes or uses it."""
        if not self.is_dry:
            self.journal.remember(kind, name, **before)

    def _remember_path(self, path: Path, **more: Any) -> None:
        if not self.is_dry:
            self.journal.remember("file", str(path), **more, **describe_path(path))

    def _run(self, argv: Sequence[str], stdin: Optional[str] = None, env: Optional[Mapping[str, str]] = None) -> None:
        """Run a tool. Raises Failure with its exit code."""
        code = self.call(argv, env, stdin=stdin)
        if code:
            raise failure_of(argv, code)

    def _effect(self, item: Item) -> str:
        """Return what the undo of an item does, or "" if it changes nothing."""
        if item.kind == "file":
            return effect_of_restoring(Path(item.name), item.before)
        if item.kind == "service":
            return "restored" if Unit(self, item.name).differs(item.before) else ""
        if item.kind == "package":
            return ""  # all of them are removed together
        if item.kind == "directory":
            return "" if item.before["was"] == "directory" else "removed"
        if item.kind == "user":
            return "removed" if item.before["was"] == "absent" and find_account(item.name) else ""
        return "undone"

    def _revert(self, item: Item) -> None:
        path = Path(item.name)
        if item.kind == "directory":
            try:
                path.rmdir()
            except OSError:
                print(f"{path} is not empty and stays")
        elif item.kind == "file":
            restore_path(path, item.before)
            if path.parent == Path("/etc/systemd/system"):
                self.call(["systemctl", "daemon-reload"])
        elif item.kind == "user":
            self._run(["userdel", item.name])
        else:
            self.call(item.before["argv"])


def find_account(name: str) -> Optional[pwd.struct_passwd]:
    """Return an account of this machine, or None."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def failure_of(argv: Sequence[str], code: int) -> Failure:
    """Return the error of a tool that has ended with ``code``."""
    return Failure(f"{' '.join(argv[:4])} failed with exit code {code}", code if code > 0 else 1)
