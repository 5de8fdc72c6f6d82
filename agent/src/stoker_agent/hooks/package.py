"""
Hook of the group ``package``: installs, upgrades or removes packages of the operating system (apt or dnf).

Settings, in the config's map or as inputs:

- ``name`` or ``packages``: a name, or a list of names; ``NAME=VERSION`` selects a version, also an older one;
- ``state``: ``present`` (default), ``latest`` or ``absent``;
- ``update_cache``: whether to refresh the package lists first (default false).

With apt, the hook waits up to ten minutes while another program installs packages. Undo removes the packages that this
deployment installed, with those of their dependencies that no other package needs. The progress is the number of
packages that the package manager has finished, of all that it changes.
"""

from __future__ import annotations

import shutil
from typing import Dict, List, Optional, Set, Tuple

from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_flag, as_list, choose_state
from stoker_agent.packages import QUIET, Apt, Manager, find_manager, is_incomplete

TOOLS = ("apt-get", "dnf")
NEEDS_ROOT = True
_STATES = ("present", "latest", "absent")


def apply(run: HookRun) -> Result:
    """Bring the packages into the state."""
    if run.is_removal:
        return undo(run)
    state, wanted = _settings(run)
    manager = find_manager()
    if as_flag(run.settings().get("update_cache", False), "update_cache"):
        code = run.call(manager.update, QUIET)
        if code:
            return Result(code, reason="the package lists could not be refreshed")
    before = manager.installed(run)
    pending = _pending(run, manager, state, wanted, before)
    if state != "absent":
        for name, _ in wanted:
            if name in before:
                run.memory.remember("package", name, is_installed=True)
    if not pending:
        return Result(changed=False)
    verb = manager.remove if state == "absent" else manager.install
    names = [
        name if version is None or state == "absent" else manager.selector(name, version) for name, version in pending
    ]
    code = _change(run, manager, [*verb, *names])
    after = manager.installed(run)
    _remember(run, {name for name, _ in pending}, set(after) - set(before), after)
    changes = _differences(before, after)
    return Result(code, changed=bool(changes), changes=changes)


def _change(run: HookRun, manager: Manager, argv: List[str]) -> int:
    """Call the package manager, report its progress, and return its exit code."""

    def report(line: bytes) -> bool:
        progress = manager.progress(line)
        if progress is not None:
            done, total, name = progress
            run.report_progress(100 * done // total if done <= total else None, f"package {done} of {total}: {name}")
        return True

    return run.call(argv, QUIET, passes=report)


def _remember(run: HookRun, wanted: Set[str], fresh: Set[str], installed: Dict[str, str]) -> None:
    """Record the packages that this deployment has installed, and their dependencies, for undo."""
    for name in sorted(fresh):
        run.memory.remember("package", name, is_installed=False, is_dependency=name not in wanted)
    for item in run.memory.list("package"):
        if item.name not in installed:
            run.memory.forget(item)


def check(run: HookRun) -> Result:
    """Compare the installed packages with the state."""
    state, wanted = _settings(run)
    manager = find_manager()
    before = manager.installed(run)
    pending = _pending(run, manager, state, wanted, before)
    target = {name: "absent" if state == "absent" else version or "latest" for name, version in pending}
    changes = [Change(name, diff=f"{before.get(name, 'absent')} → {version}") for name, version in target.items()]
    return Result.of(changes)


def preview(run: HookRun) -> Result:
    """Show what the package manager would do."""
    result = check(run)
    state, wanted = _settings(run)
    if result.changed and shutil.which("apt-get"):
        verb = Apt.remove if state == "absent" else Apt.install
        names = [name if version is None else f"{name}={version}" for name, version in wanted]
        return result._replace(code=run.call([verb[0], "-s", *verb[1:], *names], QUIET))
    return result


def undo(run: HookRun) -> Result:
    """Remove the packages that this deployment installed."""
    manager = find_manager()
    before = manager.installed(run)
    items = [item for item in run.memory.list("package") if run.memory.release(item)]
    added = [item for item in items if item.name in before and not item.before["is_installed"]]
    own = [item.name for item in added if not item.before.get("is_dependency")]
    dependencies = [item.name for item in added if item.before.get("is_dependency")]
    code = _change(run, manager, [*manager.remove, *manager.removable(run, own, dependencies)]) if own else 0
    if code == 0:
        for item in items:
            run.memory.forget(item)
    changes = _differences(before, manager.installed(run))
    return Result(code, changed=bool(changes), changes=changes)


def _settings(run: HookRun) -> Tuple[str, List[Tuple[str, Optional[str]]]]:
    """Return the state, and each package with its version or None."""
    settings = run.settings()
    names = as_list(settings.get("packages") or settings.get("name") or [], "packages")
    if not names:
        raise HookError("package needs the setting 'name' or 'packages', in its config or as an input")
    for name in names:
        if name.startswith("-"):
            raise HookError(f"{name!r} is not the name of a package")
    state = choose_state(settings, _STATES)
    return state, [(name.partition("=")[0], name.partition("=")[2] or None) for name in names]


def _pending(
    run: HookRun,
    manager: Manager,
    state: str,
    wanted: List[Tuple[str, Optional[str]]],
    installed: Dict[str, str],
) -> List[Tuple[str, Optional[str]]]:
    """Return the packages that are not in the state yet."""
    if state == "absent":
        return [(name, None) for name, _ in wanted if name in installed]
    if state == "latest":
        wanted = [(name, version or manager.candidate(run, name)) for name, version in wanted]
    return [
        (name, version)
        for name, version in wanted
        if name not in installed
        or (version is not None and not manager.matches(installed[name], version))
        or is_incomplete(installed[name])
    ]


def _differences(before: Dict[str, str], after: Dict[str, str]) -> List[Change]:
    names = sorted(set(before) | set(after))
    return [
        Change(name, diff=f"{before.get(name, 'absent')} → {after.get(name, 'absent')}")
        for name in names
        if before.get(name) != after.get(name)
    ]
