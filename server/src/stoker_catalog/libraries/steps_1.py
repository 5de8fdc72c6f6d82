"""
Steps of a config: packages, files, services and commands, each of which changes a server only if that is necessary.

The steps remember what they have changed. ``undo`` restores it. In the modes ``check`` and ``preview`` of the hook, the
steps only report what they would change. A config that uses this library is of the group ``python``:

    def apply(steps):
        steps.package("nginx")
        changed = steps.file("/etc/nginx/conf.d/site.conf", f"server {{ listen {steps.inputs['port']}; }}\\n")
        steps.service("nginx", reload=changed)
        return {"url": f"http://{steps.hostname}/"}
"""

import difflib
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
import time
from pathlib import Path

try:
    from stoker_agent import files, originals
    from stoker_agent.folders import UnsafePath
    from stoker_agent.hook_memory import Memory
except ImportError:
    raise SystemExit("this config needs a newer agent: `stoker server upgrade`") from None

#: The declarations of the entry's inputs, in JSON. The entry's own follow this library.
SCHEMA = "[]"
_QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "NEEDRESTART_SUSPEND": "1"}
_LONGEST_DOWNLOAD = 1024**3
_PACKAGE_LOCK_SECONDS = 600


class Failure(Exception):
    """The config cannot do its work; the text says why and what helps."""


class Steps:
    """The steps of one run. ``inputs`` are checked against the entry's declarations; ``self.inputs`` has the values."""

    def __init__(self, inputs):
        self.mode = os.environ.get("STOKER_HOOK_MODE") or "apply"
        self.is_dry = self.mode in ("check", "preview")
        self.is_removal = self.mode == "undo" or inputs.get("deploy_action") == "DELETE"
        self.hostname = socket.getfqdn()
        self.family = _family()
        self.changes = []
        self.journal = Memory.of_environment()
        self.inputs = {} if self.is_removal else check_inputs(inputs)

    def change(self, item, diff=""):
        """Report that an item changes. Returns whether the step has to change it now, which it has not in a dry run."""
        self.changes.append({"item": item[:255], "outcome": "changed", "diff": diff[:2000]})
        print(("would change " if self.is_dry else "") + item + (": " + diff if diff and "\n" not in diff else ""))
        if "\n" in diff:
            print(diff)
        return not self.is_dry

    def result(self, **outputs):
        """Return the outputs with what has changed."""
        report = {"deploy_changed": bool(self.changes), "deploy_changes": self.changes[:100]}
        return {**{name: value for name, value in outputs.items() if value is not None}, **report}

    def package(self, *names, keep=False):
        """Install packages that are missing. Returns whether any was. With ``keep``, undo leaves them installed."""
        missing = [name for name in names if not self.has_package(name)]
        if not self.is_dry and not keep:
            for name in names:
                self.journal.remember("package", name, is_installed=name not in missing)
        if not missing:
            return False
        if self.change("packages " + " ".join(missing), "installed"):
            _install(self, missing)
        return True

    def has_package(self, name):
        """Return whether a package is installed."""
        if self.family == "debian":
            status = read("dpkg-query", "-W", "-f", "${db:Status-Status}", name, check=False)
            return status == "installed"
        return run("rpm", "-q", name, quiet=True, check=False) == 0

    def file(self, path, content, mode=0o644, owner="root", group=None, secret=False, validate=None):
        """
        Write a file if its content, mode or owner differ. Returns whether they did.

        ``validate`` is a command that must accept the new content, with ``%s`` for the path of a file with it.
        ``secret`` keeps the content out of the report.
        """
        path, content = Path(path), content.encode() if isinstance(content, str) else content
        uid, gid = _ids(owner, group, self.is_dry)
        differences = _differences(path, content, mode, uid, gid, secret)
        if not differences:
            self._remember_file(path)
            return False
        if self.change(str(path), differences):
            with files.stage(path, content, mode, uid=uid, gid=gid, folder_mode=0o755) as staged:
                if validate is not None:
                    run(*[str(staged.path) if word == "%s" else word for word in validate])
                self._remember_file(path)
                staged.replace()
        return True

    def directory(self, path, mode=0o755, owner="root", group=None):
        """Create a directory, and correct its mode and owner. Returns whether anything changed."""
        path = Path(path)
        uid, gid = _ids(owner, group, self.is_dry)
        present = files.inspect(path)
        if not self.is_dry:
            self.journal.remember("directory", str(path), was=present.kind)
        if (present.kind, present.mode, present.uid, present.gid) == ("directory", mode, uid, gid):
            return False
        if self.change(str(path), "directory"):
            files.make_folder(path, mode, uid, gid)
        return True

    def link(self, path, target):
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

    def absent(self, path):
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

    def service(self, name, restart=False, reload=False, enabled=True, wait=1.0):
        """
        Start and enable a unit; restart or reload it if its configuration changed. Returns whether anything changed.

        Raises Failure, with the unit's last messages, if the unit does not stay active for ``wait`` seconds.
        """
        unit = name if "." in name else name + ".service"
        state = show_unit(unit)
        is_active = state.get("ActiveState") in ("active", "reloading")
        is_enabled = state.get("UnitFileState") in ("enabled", "static", "alias", "indirect", "generated")
        verb = "start" if not is_active else "restart" if restart else "reload-or-restart" if reload else None
        if not self.is_dry:
            # A package that this deployment has installed started its service by itself.
            was = all(item.before["is_installed"] for item in self.journal.list("package"))
            self.journal.remember("service", unit, active=is_active and was, enabled=is_enabled and was)
        if verb is None and (is_enabled or not enabled):
            return False
        what = ([] if verb is None else [verb]) + (["enable"] if enabled and not is_enabled else [])
        if self.change(unit, ", ".join(what)):
            if "enable" in what:
                run("systemctl", "enable", "--quiet", unit)
            if verb is not None and run("systemctl", verb, unit, check=False) != 0:
                _fail_unit(unit, "did not " + verb)
            _await_active(unit, wait)
        return True

    def stopped(self, name):
        """Stop and disable a unit. Returns whether it was active or enabled."""
        unit = name if "." in name else name + ".service"
        state = show_unit(unit)
        is_active = state.get("ActiveState") in ("active", "activating", "reloading")
        is_enabled = state.get("UnitFileState") in ("enabled", "enabled-runtime")
        if not self.is_dry:
            self.journal.remember("service", unit, active=is_active, enabled=is_enabled)
        if not is_active and not is_enabled:
            return False
        if self.change(unit, "stopped"):
            run("systemctl", "disable", "--now", "--quiet", unit)
        return True

    def command(self, item, *argv, undo=None, stdin=None, env=None):
        """Run a command that changes ``item``. ``undo`` is the command that reverts it."""
        if self.change(item):
            if undo is not None:
                self.journal.remember("command", item, argv=list(undo))
            run(*argv, stdin=stdin, env=env)
        return True

    def undo(self):
        """Revert what earlier runs changed, the last change first. Returns what has changed."""
        for item in reversed(self.journal.list()):
            if not self.journal.release(item):
                continue  # another deployment uses it
            if _has_effect(item) and self.change(item.name, "undone: " + item.kind):
                _UNDO[item.kind](self, item)
            self.journal.forget(item)
        return self.result()

    def _remember_file(self, path):
        """Remember what is at a path, before this run changes or uses it."""
        if not self.is_dry:
            self.journal.remember("file", str(path), **originals.describe(path))


def _has_effect(item):
    """Return whether the undo of an item changes anything."""
    if item.kind == "package":
        return not item.before["is_installed"]
    if item.kind == "directory":
        return item.before["was"] != "directory"
    if item.kind == "file":
        return originals.describe(Path(item.name)) != item.before
    return item.kind != "service" or _is_changed(item)


def _is_changed(item):
    """Return whether a unit is not as it was."""
    state = show_unit(item.name)
    is_active = state.get("ActiveState") in ("active", "activating", "reloading")
    is_enabled = state.get("UnitFileState") in ("enabled", "enabled-runtime")
    return is_active != item.before["active"] or (is_enabled and not item.before["enabled"])


def _undo_package(steps, item):
    """Remove a package. Its data and its configuration stay: `purge` would delete databases, too."""
    if steps.has_package(item.name):
        debian = ["apt-get", "-y", "-q", "-o", f"DPkg::Lock::Timeout={_PACKAGE_LOCK_SECONDS}", "remove"]
        run(*(debian if steps.family == "debian" else ["dnf", "-y", "remove"]), item.name, env=_QUIET)


def _undo_file(_steps, item):
    path = Path(item.name)
    originals.restore(path, item.before)
    if path.parent == Path("/etc/systemd/system"):
        run("systemctl", "daemon-reload", check=False)


def _undo_directory(_steps, item):
    try:
        Path(item.name).rmdir()
    except OSError:
        print(item.name + " is not empty and stays")


def _undo_service(_steps, item):
    unit = item.name
    if not item.before["enabled"]:
        run("systemctl", "disable", "--quiet", unit, check=False)
    if show_unit(unit).get("LoadState") == "loaded":
        run("systemctl", "start" if item.before["active"] else "stop", unit, check=False)


def _undo_command(_steps, item):
    run(*item.before["argv"], check=False)


_UNDO = {
    "package": _undo_package,
    "file": _undo_file,
    "directory": _undo_directory,
    "service": _undo_service,
    "command": _undo_command,
}


def _install(steps, names):
    if steps.family != "debian":
        run("dnf", "-y", "install", *names, env=_QUIET)
        return
    lock = f"DPkg::Lock::Timeout={_PACKAGE_LOCK_SECONDS}"
    argv = ["apt-get", "-y", "-q", "-o", lock, "-o", "Dpkg::Options::=--force-confold", "--no-install-recommends"]
    # The lists of a fresh server are missing or old, so a failure refreshes them.
    if run(*argv, "install", *names, env=_QUIET, check=False) != 0:
        run("apt-get", "-q", "-o", lock, "update", env=_QUIET)
        run(*argv, "install", *names, env=_QUIET)


def _await_active(unit, wait):
    """Wait until a unit has been active for ``wait`` seconds. Raises Failure."""
    until = time.monotonic() + wait
    while True:
        state = show_unit(unit)
        is_active = state.get("ActiveState") in ("active", "activating", "reloading")
        if not is_active and (state.get("Type"), state.get("Result")) == ("oneshot", "success"):
            return
        if state.get("SubState") == "auto-restart":
            _fail_unit(unit, "ended")
        if not is_active or time.monotonic() >= until + 60:
            _fail_unit(unit, "is " + state.get("ActiveState", "gone"))
        if time.monotonic() >= until and state["ActiveState"] == "active":
            return
        time.sleep(0.1)


def _fail_unit(unit, problem):
    run("journalctl", "--no-pager", "--lines", "30", "--unit", unit, check=False)
    raise Failure(f"{unit} {problem}: its last messages are above")


def check_inputs(values):
    """Return the inputs with defaults, each of its declared type. Raises Failure for a value that is not allowed."""
    checked = {}
    for declared in json.loads(SCHEMA):
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
            problem = _violation(checked[name], constraint)
            if problem:
                raise Failure(f"the input {name} {constraint.get('description') or problem}")
    return checked


def _violation(value, constraint):
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


def _number(value):
    number = float(value)
    return int(number) if number.is_integer() else number


def _boolean(value):
    word = str(value).lower()
    if word not in ("true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "1", "0"):
        raise ValueError(value)
    return word in ("true", "t", "yes", "y", "on", "1")


def _string(value):
    if isinstance(value, (dict, list)) or "\0" in str(value):
        raise ValueError(value)
    return str(value)


def _items(value):
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json.loads(value)
    items = value.split(",") if isinstance(value, str) else value
    return [str(item).strip() for item in items if str(item).strip()]


def _json(value):
    return json.loads(value) if isinstance(value, str) else value


_CONVERT = {"String": _string, "Number": _number, "Boolean": _boolean, "CommaDelimitedList": _items, "Json": _json}


def run(*argv, stdin=None, env=None, check=True, quiet=False):
    """Run a command, with its output in the output of the run. Return its exit code. Raises Failure unless it is 0."""
    try:
        done = subprocess.run(
            argv,
            input=None if stdin is None else stdin.encode(),
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=subprocess.DEVNULL if quiet else None,
            stderr=subprocess.DEVNULL if quiet else None,
            env={**os.environ, **(env or {})},
            check=False,
        )
    except FileNotFoundError:
        raise Failure(f"this server has no {argv[0]}") from None
    if check and done.returncode:
        raise Failure(f"{' '.join(argv[:4])} failed with exit code {done.returncode}")
    return done.returncode


def read(*argv, stdin=None, env=None, check=True):
    """Return the standard output of a command as text. Raises Failure."""
    try:
        done = subprocess.run(
            argv,
            input=None if stdin is None else stdin.encode(),
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=subprocess.PIPE,
            stderr=None if check else subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
            check=False,
        )
    except FileNotFoundError:
        if not check:
            return ""
        raise Failure(f"this server has no {argv[0]}") from None
    if check and done.returncode:
        raise Failure(f"{' '.join(argv[:4])} failed with exit code {done.returncode}")
    return done.stdout.decode("utf-8", "replace").strip()


def show_unit(unit):
    """Return properties of a systemd unit."""
    wanted = "LoadState,ActiveState,SubState,UnitFileState,Type,Result"
    text = read("systemctl", "show", "--property", wanted, "--", unit)
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def fetch(url, sha256):
    """Download a file of at most 1 GiB, verify its SHA-256 and return its content. Raises Failure."""
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read(_LONGEST_DOWNLOAD + 1)
    except (OSError, ValueError) as error:
        raise Failure(f"cannot fetch {url}: {error}") from None
    if len(content) > _LONGEST_DOWNLOAD:
        raise Failure(f"{url} has more than {_LONGEST_DOWNLOAD} bytes")
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256.lower():
        raise Failure(f"{url} has the SHA-256 {digest}, not {sha256}")
    return content


def _family():
    if shutil.which("apt-get"):
        return "debian"
    if shutil.which("dnf"):
        return "redhat"
    return platform.system().lower()


def _ids(owner, group, lenient):
    """Return the numbers of an owner and a group. An account that a dry run would create first has none."""
    try:
        account = pwd.getpwnam(owner)
        return account.pw_uid, account.pw_gid if group is None else grp.getgrnam(group).gr_gid
    except KeyError:
        if lenient:
            return -1, -1
        raise Failure(f"this server has no account {owner} or no group {group}") from None


def _differences(path, content, mode, uid, gid, secret):
    """Return what distinguishes a file from the wanted one, as text; empty if nothing does."""
    info = files.inspect(path)
    before = files.read(path)
    if before is None:
        return "created" if info.kind != "link" else "replaces a link"
    if before != content:
        return "content" if secret else _diff(path, before, content)
    differences = []
    if info.mode != mode:
        differences.append(f"mode {info.mode:04o} → {mode:04o}")
    if (info.uid, info.gid) != (uid, gid):
        differences.append(f"owner {info.uid}:{info.gid} → {uid}:{gid}")
    return ", ".join(differences)


def _diff(path, before, content):
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, content))
    return "\n".join(difflib.unified_diff(old, new, str(path), str(path), lineterm="", n=2))


# The functions that the hook calls


def main(inputs):
    """Call the entry's function ``apply`` with the steps, or revert its changes if the deployment ends."""
    try:
        steps = Steps(inputs)
        if steps.is_removal:
            return steps.undo()
        return steps.result(**(globals()["apply"](steps) or {}))
    except (Failure, UnsafePath) as failure:
        raise SystemExit(str(failure)) from None


check = preview = undo = main
