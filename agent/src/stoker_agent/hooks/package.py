"""
Hook of the group ``package``: installs, upgrades or removes packages of the operating system (apt or dnf).

Settings, in the config's map or as inputs:

- ``name`` or ``packages``: a name, or a list of names; ``NAME=VERSION`` selects a version, also an older one;
- ``state``: ``present`` (default), ``latest`` or ``absent``;
- ``update_cache``: whether to refresh the package lists first (default false).

With apt, the hook waits up to five minutes while another program installs packages. Undo removes the packages that this
deployment installed, with those of their dependencies that no other package needs. The progress is the number of
packages that the package manager has finished, of all that it changes.
"""

from __future__ import annotations

import re
import shutil
from typing import Dict, List, Optional, Set, Tuple

from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_flag, as_list, choose_state

TOOLS = ("apt-get", "dnf")
NEEDS_ROOT = True
_STATES = ("present", "latest", "absent")
_QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


#: apt's count of the packages that it changes, before it starts, and its last line for each of them.
_APT_COUNTS = re.compile(rb"(\d+) (?:upgraded|newly installed|reinstalled|downgraded|to remove)")
_APT_DONE = re.compile(rb"(?:Setting up|Removing) (\S+)")
#: dnf's line for each package, with its number and the number of all: of dnf 4, and of dnf 5.
_DNF_DONE = re.compile(
    rb"\s+(?:Installing|Upgrading|Downgrading|Reinstalling|Erasing|Cleanup)\s*:\s(?P<name>\S+)\s+(?P<n>\d+)/(?P<all>\d+)\s*$"
)
_DNF5_DONE = re.compile(
    rb"\[ *(?P<n>\d+)/(?P<all>\d+)\] (?:Installing|Upgrading|Downgrading|Reinstalling|Removing) (?P<name>\S+)"
)


class _Apt:
    """Packages of Debian and its relatives. The version of an incomplete installation ends with dpkg's status."""

    _options = ("-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0", "-o", "Dpkg::Options::=--force-confold")
    install = ("apt-get", *_options, "--no-install-recommends", "--allow-downgrades", "install")
    remove = ("apt-get", *_options, "remove")
    update = ("apt-get", "-q", "update")

    def __init__(self) -> None:
        self._done, self._all = 0, 0

    def progress(self, line: bytes) -> Optional[Tuple[int, int, str]]:
        """Return the packages done, all packages, and the name, if a line of the output tells them."""
        if b" newly installed, " in line:
            self._all = sum(int(count) for count in _APT_COUNTS.findall(line))
        match = _APT_DONE.match(line)
        if match is None:
            return None
        self._done += 1
        return self._done, self._all, match.group(1).decode("utf-8", "replace")

    def installed(self, run: HookRun) -> Dict[str, str]:
        _, text = run.read(["dpkg-query", "-W", "-f", "${db:Status-Status} ${binary:Package} ${Version}\\n"])
        rows = [line.split(" ") for line in text.splitlines()]
        return {
            name.partition(":")[0]: version if status == "installed" else f"{version} {status}"
            for status, name, version in rows
            if status not in ("not-installed", "config-files")
        }

    def candidate(self, run: HookRun, name: str) -> Optional[str]:
        """Return the version that an upgrade would install."""
        _, text = run.read(["apt-cache", "policy", name], _QUIET)
        versions = [line.split()[1] for line in text.splitlines() if line.strip().startswith("Candidate:")]
        return versions[0] if versions and versions[0] != "(none)" else None

    def selector(self, name: str, version: str) -> str:
        return f"{name}={version}"

    def matches(self, installed: str, version: str) -> bool:
        return installed == version

    def removable(self, run: HookRun, names: List[str], dependencies: List[str]) -> List[str]:
        """Return the names, and those dependencies that no package needs without them."""
        _, text = run.read(["apt-get", "-s", "--auto-remove", "remove", *names], _QUIET)
        unneeded = {line.split()[1] for line in text.splitlines() if line.startswith("Remv ")}
        return [*names, *(name for name in dependencies if name in unneeded)]


class _Dnf:
    """Packages of Fedora and its relatives."""

    install = ("dnf", "-y", "install")
    remove = ("dnf", "-y", "remove")
    update = ("dnf", "-q", "makecache")

    def progress(self, line: bytes) -> Optional[Tuple[int, int, str]]:
        """Return the packages done, all packages, and the name, if a line of the output tells them."""
        match = _DNF_DONE.match(line) or _DNF5_DONE.match(line)
        if match is None:
            return None
        return int(match.group("n")), int(match.group("all")), match.group("name").decode("utf-8", "replace")

    def installed(self, run: HookRun) -> Dict[str, str]:
        _, text = run.read(["rpm", "-qa", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\\n"])
        return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)

    def candidate(self, run: HookRun, name: str) -> Optional[str]:
        """Return the version that an upgrade would install."""
        argv = ["dnf", "-q", "repoquery", "--latest-limit", "1", "--queryformat", "%{version}-%{release}", name]
        _, text = run.read(argv, _QUIET)
        return text.split()[0] if text.split() else None

    def selector(self, name: str, version: str) -> str:
        return f"{name}-{version}"

    def matches(self, installed: str, version: str) -> bool:
        """Compare the versions; the release after the hyphen may be missing."""
        return version in (installed, installed.rpartition("-")[0])

    def removable(self, run: HookRun, names: List[str], dependencies: List[str]) -> List[str]:
        """Return the names: dnf removes dependencies that no package needs by itself."""
        return names


def apply(run: HookRun) -> Result:
    """Bring the packages into the state."""
    if run.is_removal:
        return undo(run)
    state, wanted = _settings(run)
    manager = _manager()
    if as_flag(run.settings().get("update_cache", False), "update_cache"):
        code = run.call(manager.update, _QUIET)
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


def _change(run: HookRun, manager: "_Apt | _Dnf", argv: List[str]) -> int:
    """Call the package manager, report its progress, and return its exit code."""

    def report(line: bytes) -> bool:
        progress = manager.progress(line)
        if progress is not None:
            done, total, name = progress
            run.report_progress(100 * done // total if done <= total else None, f"package {done} of {total}: {name}")
        return True

    return run.call(argv, _QUIET, passes=report)


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
    manager = _manager()
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
        verb = _Apt.remove if state == "absent" else _Apt.install
        names = [name if version is None else f"{name}={version}" for name, version in wanted]
        return result._replace(code=run.call([verb[0], "-s", *verb[1:], *names], _QUIET))
    return result


def undo(run: HookRun) -> Result:
    """Remove the packages that this deployment installed."""
    manager = _manager()
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


def _manager() -> "_Apt | _Dnf":
    if shutil.which("apt-get"):
        return _Apt()
    if shutil.which("dnf"):
        return _Dnf()
    raise HookError("this server has neither apt-get nor dnf", 127)


def _pending(
    run: HookRun,
    manager: "_Apt | _Dnf",
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
        or " " in installed[name]  # an incomplete installation
    ]


def _differences(before: Dict[str, str], after: Dict[str, str]) -> List[Change]:
    names = sorted(set(before) | set(after))
    return [
        Change(name, diff=f"{before.get(name, 'absent')} → {after.get(name, 'absent')}")
        for name in names
        if before.get(name) != after.get(name)
    ]
