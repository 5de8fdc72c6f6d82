"""
Versions of the programs that hooks call, and the output of short programs.

A version is read once per executable, and again when its file changes; the agent keeps the versions on disk.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, List, Sequence

from stoker_agent.programs import list_tools

#: Programs that are not the tool of a built-in hook.
_MORE = ("cloud-init", "git", "python3")
#: Programs that cannot print their version.
_WITHOUT_VERSION = ("cfn-init", "os-apply-config")
_SECONDS = 10.0
_LONGEST = 65536
_VERSION = re.compile(rb"\d+(?:\.[0-9A-Za-z]+)+|\b\d+\b")


def read_output(argv: Sequence[str], seconds: float, most: int) -> bytes:
    """
    Run a program and return its standard output. The program and its children end with this call.

    Raises OSError if the program does not start, fails, takes more than ``seconds`` or prints more than ``most`` bytes.
    """
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )
    assert process.stdout is not None
    limit = threading.Timer(seconds, _kill_session, (process,))
    limit.start()
    try:
        data = process.stdout.read(most + 1)
        if len(data) > most:
            raise OSError(f"more than {most} bytes of output")
        code = process.wait()
    finally:
        limit.cancel()
        _kill_session(process)
        process.stdout.close()
        process.wait()
    if code == -signal.SIGKILL:
        raise OSError(f"no end within {seconds:g} s")
    if code != 0:
        raise OSError(f"exit code {code}")
    return data


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with its children, which may hold its output open."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def list_programs() -> List[str]:
    """Return the programs whose versions the facts have: the tools of the built-in hooks, and some more."""
    return sorted({*_MORE, *(name for names in list_tools().values() for name in names)})


def list_versions(cache: Dict[str, List[Any]], *, read: bool) -> Dict[str, str]:
    """
    Return the versions of the installed programs by name; "" is an unknown version.

    ``cache`` has the modification time, the size and the version of each file by its path, and is brought up to date.
    ``read`` calls programs whose versions are not known yet, each for at most ten seconds.
    """
    versions: Dict[str, str] = {}
    entries = {**cache}
    cache.clear()
    for name in list_programs():
        path = shutil.which(name)
        if path is None:
            continue
        try:
            status = Path(path).stat()
        except OSError:
            continue
        mark = [status.st_mtime_ns, status.st_size]
        entry = entries.get(path)
        if not isinstance(entry, list) or len(entry) != 3 or entry[:2] != mark:
            entry = [*mark, _read_version(path)] if read and name not in _WITHOUT_VERSION else None
        if entry is not None:
            cache[path] = entry
        versions[name] = str(entry[2]) if entry else ""
    return versions


def _read_version(path: str) -> str:
    try:
        output = read_output([path, "--version"], _SECONDS, _LONGEST)
    except OSError:
        return ""
    match = _VERSION.search(output)
    return match.group().decode("ascii", "replace")[:64] if match else ""
