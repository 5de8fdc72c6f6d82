"""
The process that becomes a run's program: applies limits, changes the user, and executes the program.

The agent starts it as root, with a plan in a file that only root can read. It is a process of its own, because a
process with threads must not run Python between fork and exec.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, Mapping, NoReturn, Sequence

#: Starts the launcher. Arguments: the agent's archive or source directory, and the file with the plan.
CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from stoker_agent.launcher import main; main(sys.argv[2])"
_NEWNS, _BIND, _REC, _SLAVE = 0x20000, 0x1000, 0x4000, 0x80000
#: The code of a program that could not be started, as in shells.
_NOT_STARTED = 126


class _Failure(Exception):
    """The program cannot be started as the plan requires. The text is the reason."""


def main(path: str) -> NoReturn:
    """Execute the plan in the file ``path``, which this function deletes. Failures go to the plan's file ``error``."""
    plan: Dict[str, Any] = json.loads(Path(path).read_text())
    error = os.open(plan["error"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    Path(path).unlink()
    try:
        _apply(plan)
        os.execvpe(plan["argv"][0], plan["argv"], plan["environment"])  # noqa: S606 — the hook chose the program
    except _Failure as failure:
        os.write(error, str(failure).encode())
    except (OSError, ValueError) as failure:
        os.write(error, f"The run could not be started: {failure}".encode())
    os._exit(_NOT_STARTED)


def _apply(plan: Mapping[str, Any]) -> None:
    if plan["mounts_tmp"]:
        _mount_tmp(plan)
    if plan["nice"] is not None:
        _set_priority(plan["nice"], is_strict=plan["is_strict"])
    if plan["user"] is not None:
        name, _, uid, gid = plan["user"]  # as in the password database
        os.initgroups(name, gid)
        os.setgid(gid)
        os.setuid(uid)
        _check_access(plan["argv"], name)


def _give_up(limit: str, reason: str, *, is_strict: bool) -> None:
    """Fail, or say in the run's output that a limit does not hold. ``limit`` is the option's name."""
    if is_strict:
        raise _Failure(
            f"The limit {limit} cannot be enforced on this server: {reason}. Remove the option, or set the option"
            " limits to best_effort"
        )
    print(f"stoker-agent: the limit {limit} is not enforced: {reason}", file=sys.stderr, flush=True)


def _mount_tmp(plan: Mapping[str, Any]) -> None:
    """Mount the directory ``$TMPDIR`` at /tmp and /var/tmp, only for this process and its children."""
    import ctypes  # only a private /tmp needs it, and each run starts this program

    library = ctypes.CDLL(None, use_errno=True)

    def call(function: str, *arguments: Any) -> None:
        if getattr(library, function)(*arguments):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    directory: str = plan["environment"]["TMPDIR"]
    try:
        call("unshare", _NEWNS)
        call("mount", None, b"/", None, ctypes.c_ulong(_REC | _SLAVE), None)
        # The run's user may have replaced the directory by a link, before the launcher of ``on_cancel`` mounts it.
        source = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        for target in (b"/tmp", b"/var/tmp"):
            call("mount", b"/proc/self/fd/%d" % source, target, None, ctypes.c_ulong(_BIND), None)
        os.close(source)
    except OSError as error:
        _give_up("private_tmp", f"mounts fail: {error.strerror}", is_strict=plan["is_strict"])
        return
    plan["environment"]["TMPDIR"] = "/tmp"  # noqa: S108 — the mount above


def _set_priority(nice: int, *, is_strict: bool) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError as error:
        _give_up("nice", f"the priority {nice} is refused: {error.strerror}", is_strict=is_strict)


def _check_access(argv: Sequence[str], user: str) -> None:
    """Check that the user can execute the program: its directories may belong to another user."""
    for word in argv:
        if word.startswith("/") and not os.access(word, os.X_OK if word == argv[0] else os.R_OK):
            raise _Failure(
                f"The user {user} cannot use {word}: permit others to enter its directories (chmod o+x), and to read"
                " and execute the file"
            )
