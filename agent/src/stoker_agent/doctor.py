"""The checks of ``stoker-agent doctor``: files, the machine, and the service."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from stoker_agent.config import Config, Paths
from stoker_agent.programs import FOLDERS, list_tools

OK, WARNING, FAILURE, SKIPPED = "ok", "warn", "FAIL", "skip"
_LEAST_BYTES, _FEW_BYTES = 16 * 1024 * 1024, 200 * 1024 * 1024
_LEAST_INODES, _FEW_INODES = 100, 2000
_ROOT_ONLY = 0o077


class Check(NamedTuple):
    """The outcome of one check."""

    name: str
    outcome: str
    text: str
    #: What to do, if the check is not ok.
    remedy: str = ""


def check_python() -> Check:
    """Check the version of Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 8):
        return Check("python", FAILURE, version, "install Python 3.8 or newer")
    return Check("python", OK, f"{version} ({sys.executable})")


def check_files(paths: Paths, config: Optional[Config]) -> Iterator[Check]:
    """Check that the agent can use its files, and that no other user can read the secret ones."""
    for path in (paths.config, paths.sources, paths.document_key):
        if path.exists():
            yield _check_secret(path)
    for folder in (paths.state, paths.logs):
        if not folder.exists():
            yield Check("files", WARNING, f"{folder} does not exist", "the agent creates it when it starts")
        elif not os.access(str(folder), os.W_OK | os.X_OK):
            yield Check(
                "files", FAILURE, f"cannot write to {folder}", f"run this as the agent's user, or chown {folder}"
            )
        else:
            yield Check("files", OK, f"{folder} is writable")
    if config is not None and config.ca_file and not os.access(config.ca_file, os.R_OK):
        remedy = "copy the site's CA certificate there, or `stoker-agent config set ca_file FILE`"
        yield Check("files", FAILURE, f"cannot read the CA file {config.ca_file}", remedy)


def _check_secret(path: Path) -> Check:
    mode = stat.S_IMODE(path.stat().st_mode)
    if not os.access(str(path), os.R_OK):
        return Check("files", FAILURE, f"cannot read {path}", "run this as root or as the agent's user")
    if mode & _ROOT_ONLY:
        return Check("files", FAILURE, f"others can read {path} (mode {mode:04o})", f"chmod 600 {path}")
    return Check("files", OK, f"{path} is private")


def check_hooks(paths: Paths) -> Iterator[Check]:
    """Check the installed hooks, and name the tools of built-in hooks that are missing."""
    for folder in (paths.hooks, *FOLDERS):
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            if path.is_file() and not path.name.startswith("."):
                yield _check_hook(path)
    present: List[str] = []
    absent: List[str] = []
    for group, names in sorted(list_tools().items()):
        (present if any(shutil.which(name) for name in names) else absent).append(f"{group} ({' or '.join(names)})")
    yield Check("tools", OK, f"for {', '.join(present) or 'no hook'}")
    if absent:
        yield Check(
            "tools", SKIPPED, f"not installed, for {', '.join(absent)}", "only configs of these groups need them"
        )


def _check_hook(path: Path) -> Check:
    if not os.access(str(path), os.X_OK):
        return Check("hooks", FAILURE, f"{path} is not executable", f"chmod 755 {path}")
    if path.stat().st_mode & stat.S_IWOTH:
        return Check("hooks", FAILURE, f"everybody can write to {path}", f"chmod o-w {path}")
    return Check("hooks", OK, f"{path} is executable")


def check_disk(paths: Paths) -> Iterator[Check]:
    """Check the free space and the free inodes for the state of runs."""
    folder = next(path for path in (paths.state, *paths.state.parents) if path.exists())
    values = os.statvfs(str(folder))
    remedy = f"free space on the file system of {folder}: without space, no run starts"
    for free, least, few, text in (
        (values.f_bavail * values.f_frsize, _LEAST_BYTES, _FEW_BYTES, "{:,} bytes are free"),
        # some file systems have no fixed number of inodes, and report 0
        (values.f_favail if values.f_files else _FEW_INODES, _LEAST_INODES, _FEW_INODES, "{:,} inodes are free"),
    ):
        outcome = FAILURE if free < least else WARNING if free < few else OK
        yield Check("disk", outcome, f"{text.format(free)} for {folder}", "" if outcome == OK else remedy)


def check_service(root: Optional[str], *, is_running: bool) -> Iterator[Check]:
    """Check that the agent runs, and that systemd starts it at boot."""
    start = "systemctl start stoker-agent, or: stoker-agent run"
    yield Check("agent", OK, "runs") if is_running else Check("agent", FAILURE, "does not run", start)
    if root:
        yield Check("service", SKIPPED, "an agent with its own root is not a service of the system")
        return
    if not Path("/run/systemd/system").is_dir():
        yield Check("service", SKIPPED, "this machine has no systemd")
        return
    for verb, good in (("is-active", "active"), ("is-enabled", "enabled")):
        words: List[str] = ["systemctl", verb, "stoker-agent.service"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        state = done.stdout.strip() or done.stderr.strip()
        if state == good:
            yield Check("service", OK, f"stoker-agent.service is {state}")
        else:
            remedy = "systemctl enable --now stoker-agent; journalctl -u stoker-agent"
            yield Check("service", FAILURE, f"stoker-agent.service is {state}", remedy)
