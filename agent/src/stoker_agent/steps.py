"""
Steps of a config: packages, files, services and commands, each of which changes a server only if that is necessary.

The steps remember what they have changed (``hook_memory``), and ``undo`` restores it. In the modes ``check`` and
``preview`` of the hook, the steps only report what they would change. The catalog's library ``steps/1`` gives them to
configs of the group ``python``.
"""

from __future__ import annotations

import functools
import grp
import hashlib
import os
import platform
import pwd
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from stoker_agent import files
from stoker_agent.folders import UnsafePath
from stoker_agent.hook_contract import APPLY, MODE, Change, Commands, HookError, HookRun, Result, run_tool
from stoker_agent.hook_memory import Memory
from stoker_agent.input_types import check_inputs
from stoker_agent.packages import QUIET, find_manager, find_pending, is_incomplete
from stoker_agent.reversible import Failure, ReversibleRun, failure_of, find_account
from stoker_agent.units import Unit, UnitState

_LONGEST_DOWNLOAD = 1024**3
_Environment = Optional[Mapping[str, str]]
#: A user or a group: its name or its number, or None for any.
_Account = Union[str, int, None]


class Steps(ReversibleRun):
    """The steps of one run."""

    #: The values of a catalog entry's inputs, each of its declared type.
    inputs: Mapping[str, Any] = {}

    @functools.cached_property
    def hostname(self) -> str:
        """The name of this machine with its domain."""
        return socket.getfqdn()

    @functools.cached_property
    def family(self) -> str:
        """The family of this machine's operating system: ``debian``, ``redhat`` or another name."""
        if shutil.which("apt-get"):
            return "debian"
        return "redhat" if shutil.which("dnf") else platform.system().lower()

    def package(self, *names: str, keep: bool = False, state: str = "present", refresh: bool = True) -> bool:
        """
        Bring packages into the state ``present``, ``latest`` or ``absent``. Returns whether any was not in it.

        ``NAME=VERSION`` selects a version. Undo removes packages that were missing, with their dependencies that no
        other package needs, unless ``keep`` is set. With ``refresh``, the lists of packages are fetched if the
        installation fails, because those of a fresh server are missing or old.
        """
        manager = find_manager()
        before = manager.installed(self)
        wanted = [(name, version or None) for name, _, version in (word.partition("=") for word in names)]
        pending = find_pending(manager, self, wanted, state, before)
        if not keep and state != "absent":
            for name, _ in wanted:
                self._remember("package", name, is_installed=name in before and not is_incomplete(before[name]))
        if not pending:
            return False
        if self.is_dry:
            for name, version in pending.items():
                target = "absent" if state == "absent" else version or "latest"
                self.change(name, f"{before.get(name, 'absent')} → {target}")
            return True
        words = [name if version is None else manager.selector(name, version) for name, version in pending.items()]
        argv = [*(manager.remove if state == "absent" else manager.install), *words]
        code = self._call_manager(manager, argv)
        if code and refresh and state != "absent":
            self._run(manager.update, env=QUIET)
            code = self._call_manager(manager, argv)
        after = manager.installed(self)
        self._remember_installed([] if keep or state == "absent" else sorted({*after} - {*before, *pending}), after)
        self._report_packages(before, after)
        if code:
            unchanged = [name for name in pending if after.get(name) == before.get(name)]
            self.changes += [Change(name, "failed") for name in unchanged]
            raise failure_of(argv, code)
        return True

    def _remember_installed(self, dependencies: Sequence[str], installed: Mapping[str, str]) -> None:
        """Remember dependencies that were installed, and forget packages that are not: others may install them."""
        for name in dependencies:
            self._remember("package", name, is_installed=False, is_dependency=True)
        for item in self.journal.list("package"):
            if item.name not in installed:
                self.journal.forget(item)

    def file(
        self,
        path: Union[str, Path],
        content: Union[str, bytes],
        mode: Optional[int] = 0o644,
        owner: _Account = "root",
        group: _Account = None,
        secret: bool = False,
        validate: Optional[Sequence[str]] = None,
        shows_new: bool = False,
    ) -> bool:
        """
        Write a file if its content, mode or owner differ. Returns whether they did.

        With the mode None and the owner None, those of a present file stay. ``validate`` is a command that must accept
        the new content, with ``%s`` for the path of a file with it. ``secret`` keeps the content out of the report,
        ``shows_new`` includes that of a file that is created.
        """
        path, content = Path(path), content.encode() if isinstance(content, str) else content
        uid, gid = _find_ids(owner, group, lenient=self.is_dry)
        differences = files.compare(path, content, mode, uid, gid)
        if not differences:
            self._remember_path(path)
            return False
        present = files.inspect(path)
        if present.kind == "directory":
            raise Failure(f"{path} is a directory: remove it first")
        text = ", ".join(differences) if present.kind == "file" or shows_new else "created"
        if self.change(str(path), "content" if secret and "\n" in text else text):
            mode = (present.mode if present.kind == "file" else 0o644) if mode is None else mode

            def check(staged: Path) -> None:
                if validate is not None:
                    self._run([str(staged) if word == "%s" else word for word in validate])
                self._remember_path(path)

            files.write(path, content, mode, uid=uid, gid=gid, folder_mode=0o755, check=check)
        return True

    def directory(
        self,
        path: Union[str, Path],
        mode: Optional[int] = 0o755,
        owner: _Account = "root",
        group: _Account = None,
        owns_content: bool = False,
    ) -> bool:
        """
        Create a directory, and correct its mode and owner. Returns whether anything changed.

        Undo removes a directory that was created, if it is empty. With ``owns_content``, it removes the directory with
        everything in it, and restores the mode and the owner of one that was there before.
        """
        path = Path(path)
        uid, gid = _find_ids(owner, group, lenient=self.is_dry)
        kind = files.inspect(path).kind
        if owns_content:
            self._remember_path(path, made="directory")
        else:
            self._remember("directory", str(path), was=kind)
        differences = files.compare(path, None, mode, uid, gid) if kind == "directory" else ["created"]
        if differences and self.change(str(path), ", ".join(differences)):
            files.make_folder(path, mode, uid, gid)
        return bool(differences)

    def link(self, path: Union[str, Path], target: str, recursive: bool = False) -> bool:
        """
        Create a symbolic link. Returns whether it was missing or led elsewhere.

        With ``recursive``, it takes the place of a directory with everything in it.
        """
        path = Path(path)
        present = files.inspect(path)
        self._remember_path(path)
        if (present.kind, present.target) == ("link", target):
            return False
        if self.change(str(path), "link to " + target):
            if recursive and present.kind == "directory":
                files.remove(path)
            files.link(path, target)
        return True

    def absent(self, path: Union[str, Path], recursive: bool = False) -> bool:
        """Remove a file or a link; with ``recursive``, also a directory. Returns whether there was one."""
        path = Path(path)
        kind = files.inspect(path).kind
        if kind == "directory" and not recursive:
            raise Failure(f"{path} is a directory: remove it first")
        self._remember_path(path)
        if kind == "absent":
            return False
        if self.change(str(path), "removed"):
            files.remove(path)
        return True

    def service(
        self,
        name: str,
        restart: bool = False,
        reload: bool = False,
        enabled: Optional[bool] = True,
        wait: float = 1.0,
    ) -> bool:
        """
        Start and enable a unit; restart or reload it if its configuration changed. Returns whether anything changed.

        ``enabled`` False disables the unit, None leaves that as it is. Raises Failure, with the unit's last messages,
        if the unit does not stay active for ``wait`` seconds.
        """
        unit = Unit(self, name)
        state = unit.read()
        is_active = state.get("ActiveState") in ("active", "reloading")
        verb = "start" if not is_active else "restart" if restart else "reload-or-restart" if reload else None
        if self.is_dry and verb == "start" and state.is_as_started:
            verb = None  # a unit that ends by itself runs again at each apply, and does not drift
        # A package that this deployment has installed started its service by itself.
        was = all(item.before["is_installed"] for item in self.journal.list("package"))
        self._remember("service", unit.name, active=state.is_active and was, enabled=state.is_enabled and was)
        if not self._control(unit, [*_switch(state, enabled), *([] if verb is None else [verb])]):
            return False
        if not self.is_dry:
            unit.await_stable(wait)
        return True

    def stopped(self, name: str, enabled: Optional[bool] = False) -> bool:
        """Stop a unit, and disable it unless ``enabled`` says otherwise. Returns whether anything changed."""
        unit = Unit(self, name)
        state = unit.read()
        self._remember("service", unit.name, **state.switches)
        return self._control(unit, [*_switch(state, enabled), *(["stop"] if state.is_active else [])])

    def _control(self, unit: Unit, verbs: Sequence[str]) -> bool:
        """Change a unit by these verbs of systemctl. Returns whether there are any."""
        if verbs and self.change(unit.name, ", ".join(verbs)):
            for verb in verbs:
                unit.control(verb, *(["--quiet"] if verb in ("enable", "disable") else []))
        return bool(verbs)

    def command(
        self,
        item: str,
        *argv: str,
        undo: Optional[Sequence[str]] = None,
        stdin: Optional[str] = None,
        env: _Environment = None,
        diff: str = "",
    ) -> bool:
        """Run a command that changes ``item``, as ``diff`` describes. ``undo`` is the command that reverts it."""
        if self.change(item, diff):
            if undo is not None:
                self._remember("command", item, argv=list(undo))
            self._run(argv, stdin, env)
        return True

    def account(self, name: str) -> Optional[pwd.struct_passwd]:
        """Return an account that the config describes, None if it is missing. Undo removes it if it was missing."""
        account = find_account(name)
        self._remember("user", name, was="absent" if account is None else "present")
        return account


def _switch(state: UnitState, enabled: Optional[bool]) -> List[str]:
    """Return the verb of systemctl that enables or disables a unit, if one is necessary."""
    if enabled:
        return ["enable"] if state.is_switchable else []
    return ["disable"] if enabled is False and state.is_enabled else []


def _find_ids(owner: _Account, group: _Account, *, lenient: bool) -> Tuple[Optional[int], Optional[int]]:
    """
    Return the numbers of an owner and a group, each None for any.

    The group of an owner with a name is by default the owner's. An account that a dry run would create first has -1.
    """
    try:
        account = pwd.getpwnam(owner) if isinstance(owner, str) else None
        gid = grp.getgrnam(group).gr_gid if isinstance(group, str) else group
    except KeyError:
        if lenient:
            return -1, -1
        raise Failure(f"this server has no account {owner} or no group {group}") from None
    if account is None:
        return None if owner is None else int(owner), gid
    return account.pw_uid, account.pw_gid if gid is None else gid


def run(
    *argv: str, stdin: Optional[str] = None, env: _Environment = None, check: bool = True, quiet: bool = False
) -> int:
    """Run a command, with its output in the output of the run. Return its exit code. Raises Failure unless it is 0."""
    sys.stdout.flush()
    nothing = subprocess.DEVNULL if quiet else None
    return _check(argv, run_tool(argv, env, stdin=stdin, stdout=nothing, stderr=nothing), check).returncode


def read(*argv: str, stdin: Optional[str] = None, env: _Environment = None, check: bool = True) -> str:
    """Return the standard output of a command as text. Raises Failure."""
    if not check and not shutil.which(argv[0]):
        return ""
    env = {"LC_ALL": "C.UTF-8", **(env or {})}
    done = run_tool(argv, env, stdin=stdin, stdout=subprocess.PIPE, stderr=None if check else subprocess.DEVNULL)
    return _check(argv, done, check).stdout.decode("utf-8", "replace").strip()


def _check(
    argv: Sequence[str], done: "subprocess.CompletedProcess[bytes]", check: bool
) -> "subprocess.CompletedProcess[bytes]":
    if check and done.returncode:
        raise failure_of(argv, done.returncode)
    return done


def show_unit(unit: str) -> Mapping[str, str]:
    """Return properties of a systemd unit."""
    return Unit(Commands(), unit).read()


def fetch(url: str, sha256: str) -> bytes:
    """Download a file of at most 1 GiB, verify its SHA-256 and return its content. Raises Failure."""
    import urllib.request  # takes longer to import than most steps to run

    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 — the digest decides
            content: bytes = answer.read(_LONGEST_DOWNLOAD + 1)
    except (OSError, ValueError) as error:
        raise Failure(f"cannot fetch {url}: {error}") from None
    if len(content) > _LONGEST_DOWNLOAD:
        raise Failure(f"{url} has more than {_LONGEST_DOWNLOAD} bytes")
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256.lower():
        raise Failure(f"{url} has the SHA-256 {digest}, not {sha256}")
    return content


def run_steps(
    apply: Callable[[Steps], Optional[Mapping[str, Any]]],
    inputs: Mapping[str, Any],
    schema: Sequence[Mapping[str, Any]],
) -> Dict[str, Any]:
    """Call a config's function ``apply`` with the steps, or revert its changes if the deployment ends."""
    mode = os.environ.get(MODE) or APPLY
    is_removal = mode == "undo" or inputs.get("deploy_action") == "DELETE"
    outputs: Optional[Mapping[str, Any]] = None
    try:
        steps = Steps(mode, Memory.of_environment())
        if is_removal:
            steps.undo()
        else:
            steps.inputs = check_inputs(inputs, schema)
            outputs = apply(steps)
        return steps.result(**(outputs or {}))
    except (HookError, UnsafePath) as error:
        raise SystemExit(str(error)) from None


def by_steps(apply: Callable[[HookRun, Steps], None]) -> Callable[[HookRun], Result]:
    """Make a function of steps the function of a hook for all modes."""
    return functools.wraps(apply)(lambda run: apply_steps(run, apply))


def apply_steps(run: HookRun, apply: Callable[[HookRun, Steps], None], memory: Optional[Memory] = None) -> Result:
    """
    Run a hook that consists of steps, in any mode: call ``apply``, or revert its changes if the deployment ends.

    ``memory`` remembers what changes, by default that of the deployment.
    The result of a failed run lists what has changed, and what could not be changed.
    """
    steps = Steps(run.mode, memory or run.memory)
    try:
        if run.is_removal:
            steps.undo()
        else:
            apply(run, steps)
    except HookError as error:
        print(error, file=sys.stderr)
        changes = [*steps.changes[:-1], *(change._replace(outcome="failed") for change in steps.changes[-1:])]
        is_changed = any(change.outcome == "changed" for change in changes)
        return Result(error.code, changed=is_changed, changes=changes, reason=str(error))
    finally:
        run.has_tool_failed = run.has_tool_failed or steps.has_tool_failed
    return Result.of(steps.changes)
