"""
Steps of a config: packages, files, services and commands, each of which changes a server only if that is necessary.

The steps remember what they have changed (``hook_memory``), and ``undo`` restores it. In the modes ``check`` and
``preview`` of the hook, the steps only report what they would change. The catalog's library ``steps/1`` gives them to
configs of the group ``python``.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import platform
import pwd
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from stoker_agent import files
from stoker_agent.folders import UnsafePath
from stoker_agent.hook_contract import APPLY, MODE, Change, Commands, HookError, Result, run_tool
from stoker_agent.hook_memory import Item, Memory, describe_path, effect_of_restoring, restore_path
from stoker_agent.packages import QUIET, find_manager, is_incomplete
from stoker_agent.units import Unit

_LONGEST_DOWNLOAD = 1024**3
_Environment = Optional[Mapping[str, str]]
#: The config cannot do its work; the text says why and what helps.
Failure = HookError


class Steps(Commands):
    """Steps of one run. ``inputs`` are checked against the declarations ``schema``; ``self.inputs`` has the values."""

    def __init__(self, inputs: Mapping[str, Any], schema: Sequence[Mapping[str, Any]]) -> None:
        self.mode = os.environ.get(MODE) or APPLY
        self.is_dry = self.mode in ("check", "preview")
        self.is_removal = self.mode == "undo" or inputs.get("deploy_action") == "DELETE"
        self.hostname = socket.getfqdn()
        self.family = _family()
        self.changes: List[Change] = []
        self.journal = Memory.of_environment()
        self.inputs = {} if self.is_removal else check_inputs(inputs, schema)

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
        if not self.is_dry and not keep:
            for name in names:
                self.journal.remember("package", name, is_installed=name not in missing)
        if not missing:
            return False
        is_due = self.change("packages " + " ".join(missing), "installed")
        if is_due and run(*manager.install, *missing, env=QUIET, check=False) != 0:
            run(*manager.update, env=QUIET)  # the lists of a fresh server are missing or old
            run(*manager.install, *missing, env=QUIET)
        return True

    def file(
        self,
        path: Union[str, Path],
        content: Union[str, bytes],
        mode: int = 0o644,
        owner: str = "root",
        group: Optional[str] = None,
        secret: bool = False,
        validate: Optional[Sequence[str]] = None,
    ) -> bool:
        """
        Write a file if its content, mode or owner differ. Returns whether they did.

        ``validate`` is a command that must accept the new content, with ``%s`` for the path of a file with it.
        ``secret`` keeps the content out of the report.
        """
        path, content = Path(path), content.encode() if isinstance(content, str) else content
        uid, gid = _find_ids(owner, group, lenient=self.is_dry)
        differences = files.compare(path, content, mode, uid, gid)
        if not differences:
            self._remember_file(path)
            return False
        is_present = files.read(path) is not None
        text = ", ".join(differences) if is_present else "created"
        if self.change(str(path), "content" if secret and "\n" in text else text):
            with files.stage(path, content, mode, uid=uid, gid=gid, folder_mode=0o755) as staged:
                if validate is not None:
                    run(*[str(staged.path) if word == "%s" else word for word in validate])
                self._remember_file(path)
                staged.replace()
        return True

    def directory(
        self, path: Union[str, Path], mode: int = 0o755, owner: str = "root", group: Optional[str] = None
    ) -> bool:
        """Create a directory, and correct its mode and owner. Returns whether anything changed."""
        path = Path(path)
        uid, gid = _find_ids(owner, group, lenient=self.is_dry)
        present = files.inspect(path)
        if not self.is_dry:
            self.journal.remember("directory", str(path), was=present.kind)
        if (present.kind, present.mode, present.uid, present.gid) == ("directory", mode, uid, gid):
            return False
        if self.change(str(path), "directory"):
            files.make_folder(path, mode, uid, gid)
        return True

    def link(self, path: Union[str, Path], target: str) -> bool:
        """Create a symbolic link. Returns whether it was missing or led elsewhere."""
        path = Path(path)
        present = files.inspect(path)
        if (present.kind, present.target) == ("link", target):
            self._remember_file(path)
            return False
        if self.change(str(path), "link to " + target):
            self._remember_file(path)
            files.link(path, target)
        return True

    def absent(self, path: Union[str, Path]) -> bool:
        """Remove a file or a link. Returns whether there was one."""
        path = Path(path)
        kind = files.inspect(path).kind
        if kind == "absent":
            self._remember_file(path)
            return False
        if kind == "directory":
            raise Failure(f"{path} is a directory: remove it first")
        if self.change(str(path), "removed"):
            self._remember_file(path)
            files.remove(path)
        return True

    def service(
        self, name: str, restart: bool = False, reload: bool = False, enabled: bool = True, wait: float = 1.0
    ) -> bool:
        """
        Start and enable a unit; restart or reload it if its configuration changed. Returns whether anything changed.

        Raises Failure, with the unit's last messages, if the unit does not stay active for ``wait`` seconds.
        """
        unit = Unit(self, name)
        state = unit.read()
        is_active = state.get("ActiveState") in ("active", "reloading")
        verb = "start" if not is_active else "restart" if restart else "reload-or-restart" if reload else None
        if not self.is_dry:
            # A package that this deployment has installed started its service by itself.
            was = all(item.before["is_installed"] for item in self.journal.list("package"))
            self.journal.remember("service", unit.name, active=is_active and was, enabled=state.is_enabled and was)
        what = ([] if verb is None else [verb]) + (["enable"] if enabled and state.is_switchable else [])
        if not what:
            return False
        if self.change(unit.name, ", ".join(what)):
            if "enable" in what:
                unit.control("enable", "--quiet")
            if verb is not None:
                unit.control(verb)
            unit.await_stable(wait)
        return True

    def stopped(self, name: str) -> bool:
        """Stop and disable a unit. Returns whether it was active or enabled."""
        unit = Unit(self, name)
        state = unit.read()
        if not self.is_dry:
            self.journal.remember("service", unit.name, **unit.describe())
        if not state.is_active and not state.is_enabled:
            return False
        if self.change(unit.name, "stopped"):
            unit.control("disable", "--now", "--quiet")
        return True

    def command(
        self,
        item: str,
        *argv: str,
        undo: Optional[Sequence[str]] = None,
        stdin: Optional[str] = None,
        env: _Environment = None,
    ) -> bool:
        """Run a command that changes ``item``. ``undo`` is the command that reverts it."""
        if self.change(item):
            if undo is not None:
                self.journal.remember("command", item, argv=list(undo))
            run(*argv, stdin=stdin, env=env)
        return True

    def undo(self) -> Dict[str, Any]:
        """Revert what earlier runs changed, the last change first. Returns what has changed."""
        for item in reversed(self.journal.list()):
            if not self.journal.release(item):
                continue  # another deployment uses it
            if self._has_effect(item) and self.change(item.name, "undone: " + item.kind):
                self._revert(item)
            self.journal.forget(item)
        return self.result()

    def _remember_file(self, path: Path) -> None:
        """Remember what is at a path, before this run changes or uses it."""
        if not self.is_dry:
            self.journal.remember("file", str(path), **describe_path(path))

    def _has_effect(self, item: Item) -> bool:
        """Whether the undo of an item changes anything."""
        if item.kind == "package":
            return not item.before["is_installed"]
        if item.kind == "directory":
            return bool(item.before["was"] != "directory")
        if item.kind == "file":
            return bool(effect_of_restoring(Path(item.name), item.before))
        return item.kind != "service" or Unit(self, item.name).differs(item.before)

    def _revert(self, item: Item) -> None:
        path = Path(item.name)
        if item.kind == "package":
            manager = find_manager()
            if item.name in manager.installed(self):
                run(*manager.remove, item.name, env=QUIET)  # `purge` would delete databases, too
        elif item.kind == "directory":
            try:
                path.rmdir()
            except OSError:
                print(f"{path} is not empty and stays")
        elif item.kind == "file":
            restore_path(path, item.before)
            if path.parent == Path("/etc/systemd/system"):
                run("systemctl", "daemon-reload", check=False)
        elif item.kind == "service":
            unit = Unit(self, item.name)
            unit.switch_off(item.before)
            unit.switch_on(item.before)
        else:
            run(*item.before["argv"], check=False)


def _find_ids(owner: str, group: Optional[str], *, lenient: bool) -> Tuple[int, int]:
    """Return the numbers of an owner and a group. An account that a dry run would create first has none."""
    try:
        account = pwd.getpwnam(owner)
        return account.pw_uid, account.pw_gid if group is None else grp.getgrnam(group).gr_gid
    except KeyError:
        if lenient:
            return -1, -1
        raise Failure(f"this server has no account {owner} or no group {group}") from None


def check_inputs(values: Mapping[str, Any], schema: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Return the inputs with defaults, each of its declared type. Raises Failure for a value that is not allowed."""
    checked = {}
    for declared in schema:
        name = declared["name"]
        value = values.get(name)
        if value is None:
            value = declared.get("default")
        if value is None:
            raise Failure(f"the input {name} needs a value")
        try:
            checked[name] = _CONVERT[declared["type"]](value)
        except (TypeError, ValueError):
            raise Failure(f"the input {name} must be of the type {declared['type']}") from None
        for constraint in declared.get("constraints") or ():
            problem = _find_violation(checked[name], constraint)
            if problem:
                raise Failure(f"the input {name} {constraint.get('description') or problem}")
    return checked


def _find_violation(value: Any, constraint: Mapping[str, Any]) -> Optional[str]:
    """Return how a value violates a constraint, or None."""
    texts = value if isinstance(value, list) else [value]
    if "allowed_values" in constraint and value not in constraint["allowed_values"]:
        return f"must be one of {constraint['allowed_values']}"
    if "allowed_pattern" in constraint:
        pattern = constraint["allowed_pattern"]
        if not all(re.fullmatch(pattern, str(text)) for text in texts):
            return f"must match {pattern}"
    limits = constraint.get("range") or constraint.get("length")
    if limits:
        size = value if "range" in constraint else len(value)
        if size < limits.get("min", size) or size > limits.get("max", size):
            return f"must be from {limits.get('min', 'any')} to {limits.get('max', 'any')}"
    return None


def _number(value: Any) -> Union[int, float]:
    number = float(value)
    return int(number) if number.is_integer() else number


def _boolean(value: Any) -> bool:
    word = str(value).lower()
    if word not in ("true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "1", "0"):
        raise ValueError(value)
    return word in ("true", "t", "yes", "y", "on", "1")


def _string(value: Any) -> str:
    if isinstance(value, (dict, list)) or "\0" in str(value):
        raise ValueError(value)
    return str(value)


def _items(value: Any) -> List[str]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json.loads(value)
    items = value.split(",") if isinstance(value, str) else value
    return [str(item).strip() for item in items if str(item).strip()]


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


_CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "String": _string,
    "Number": _number,
    "Boolean": _boolean,
    "CommaDelimitedList": _items,
    "Json": _json,
}


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
        raise Failure(f"{' '.join(argv[:4])} failed with exit code {done.returncode}")
    return done


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


def _family() -> str:
    if shutil.which("apt-get"):
        return "debian"
    if shutil.which("dnf"):
        return "redhat"
    return platform.system().lower()


def run_steps(
    apply: Callable[[Steps], Optional[Mapping[str, Any]]],
    inputs: Mapping[str, Any],
    schema: Sequence[Mapping[str, Any]],
) -> Dict[str, Any]:
    """Call a config's function ``apply`` with the steps, or revert its changes if the deployment ends."""
    try:
        steps = Steps(inputs, schema)
        if steps.is_removal:
            return steps.undo()
        return steps.result(**(apply(steps) or {}))
    except (HookError, UnsafePath) as error:
        raise SystemExit(str(error)) from None
