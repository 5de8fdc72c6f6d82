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
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from stoker_agent import files
from stoker_agent.folders import UnsafePath
from stoker_agent.hook_contract import APPLY, MODE, Change, Commands, HookError, HookRun, Result, run_tool
from stoker_agent.hook_memory import Item, Memory, describe_path, effect_of_restoring, restore_path
from stoker_agent.input_types import check_inputs
from stoker_agent.packages import QUIET, find_manager, is_incomplete
from stoker_agent.units import Unit, UnitState

_LONGEST_DOWNLOAD = 1024**3
_Environment = Optional[Mapping[str, str]]
#: A user or a group: its name or its number, or None for any.
_Account = Union[str, int, None]
#: The config cannot do its work; the text says why and what helps.
Failure = HookError


class Steps(Commands):
    """
    The steps of one run in the mode ``mode``. ``journal`` is the memory of the run's deployment.

    ``inputs`` are the values of a catalog entry's inputs, each of its declared type.
    """

    def __init__(self, mode: str, journal: Memory, *, is_removal: bool) -> None:
        self.mode = mode
        self.is_dry = mode in ("check", "preview")
        self.is_removal = is_removal
        self.changes: List[Change] = []
        self.journal = journal
        self.inputs: Dict[str, Any] = {}

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

    def package(self, *names: str, keep: bool = False) -> bool:
        """Install packages that are missing. Returns whether any was. With ``keep``, undo leaves them installed."""
        manager = find_manager()
        installed = manager.installed(self)
        missing = [name for name in names if name not in installed or is_incomplete(installed[name])]
        if not keep:
            for name in names:
                self._remember("package", name, is_installed=name not in missing)
        if not missing:
            return False
        is_due = self.change("packages " + " ".join(missing), "installed")
        if is_due and self.call([*manager.install, *missing], QUIET) != 0:
            self._run(manager.update, env=QUIET)  # the lists of a fresh server are missing or old
            self._run([*manager.install, *missing], env=QUIET)
        return True

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
            with files.stage(path, content, mode, uid=uid, gid=gid, folder_mode=0o755) as staged:
                if validate is not None:
                    self._run([str(staged.path) if word == "%s" else word for word in validate])
                self._remember_path(path)
                staged.replace()
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
        self._remember("service", unit.name, **unit.describe())
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
        for item in own:
            if item.kind == "service":
                continue
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

    def _is_last_user(self, item: Item) -> bool:
        """Whether this deployment has to undo its change of an item. A dry run hands no item over."""
        return not self.journal.is_used(item.kind, item.name) if self.is_dry else self.journal.release(item)

    def _remember(self, kind: str, name: str, **before: Any) -> None:
        """Remember how an item is before this run changes or uses it."""
        if not self.is_dry:
            self.journal.remember(kind, name, **before)

    def _remember_path(self, path: Path, **more: Any) -> None:
        """Remember what is at a path."""
        if not self.is_dry:
            self.journal.remember("file", str(path), **more, **describe_path(path))

    def _run(self, argv: Sequence[str], stdin: Optional[str] = None, env: _Environment = None) -> None:
        """Run a tool. Raises Failure with its exit code."""
        code = self.call(argv, env, stdin=stdin)
        if code:
            raise _failure(argv, code)

    def _effect(self, item: Item) -> str:
        """Return what the undo of an item does, or "" if it changes nothing."""
        if item.kind == "file":
            return effect_of_restoring(Path(item.name), item.before)
        if item.kind == "service":
            return "restored" if Unit(self, item.name).differs(item.before) else ""
        if item.kind == "package":
            return "" if item.before["is_installed"] else "removed"
        if item.kind == "directory":
            return "" if item.before["was"] == "directory" else "removed"
        if item.kind == "user":
            return "removed" if item.before["was"] == "absent" and find_account(item.name) else ""
        return "undone"

    def _revert(self, item: Item) -> None:
        path = Path(item.name)
        if item.kind == "package":
            manager = find_manager()
            if item.name in manager.installed(self):
                self._run([*manager.remove, item.name], env=QUIET)  # `purge` would delete databases, too
        elif item.kind == "directory":
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


def _switch(state: UnitState, enabled: Optional[bool]) -> List[str]:
    """Return the verb of systemctl that enables or disables a unit, if one is necessary."""
    if enabled:
        return ["enable"] if state.is_switchable else []
    return ["disable"] if enabled is False and state.is_enabled else []


def find_account(name: str) -> Optional[pwd.struct_passwd]:
    """Return an account of this machine, or None."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


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
        raise _failure(argv, done.returncode)
    return done


def _failure(argv: Sequence[str], code: int) -> Failure:
    return Failure(f"{' '.join(argv[:4])} failed with exit code {code}", code if code > 0 else 1)


def show_unit(unit: str) -> Mapping[str, str]:
    """Return properties of a systemd unit."""
    return Unit(Commands(), unit).read().properties


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
        steps = Steps(mode, Memory.of_environment(), is_removal=is_removal)
        if is_removal:
            steps.undo()
        else:
            steps.inputs = check_inputs(inputs, schema)
            outputs = apply(steps)
        return steps.result(**(outputs or {}))
    except (HookError, UnsafePath) as error:
        raise SystemExit(str(error)) from None


def apply_steps(run: HookRun, apply: Callable[[HookRun, Steps], None]) -> Result:
    """Run a hook that consists of steps, in any mode: call ``apply``, or revert its changes if the deployment ends."""
    steps = Steps(run.mode, run.memory, is_removal=run.is_removal)
    try:
        if steps.is_removal:
            steps.undo()
        else:
            apply(run, steps)
    finally:
        run.has_tool_failed = steps.has_tool_failed
    return Result.of(steps.changes)
