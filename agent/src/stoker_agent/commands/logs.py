"""``stoker-agent logs``: the agent's log, or the output of one run."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import BinaryIO, Callable, Dict, List

from stoker_agent.config import Paths, Unusable
from stoker_agent.terminal import byte_writer

_EVERY_SECONDS = 0.5
_CHUNK = 64 * 1024
#: The agent keeps two older files (``commands.run``).
_OLDER = (".2", ".1", "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("-f", "--follow", action="store_true", help="print new lines until interrupted")
    parser.add_argument("--lines", type=int, default=100, metavar="N", help="lines to begin with (%(default)s)")
    parser.add_argument("--run", metavar="ID", help="the output of the run with this id, or with an id that begins so")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Print the log. Raises Unusable if there is none."""
    if options.run:
        folder = _find_run(paths, options.run)
        handles = {file: _print_tail([file], options.lines) for file in (folder / "stdout", folder / "stderr")}
        if options.follow:
            _follow(handles, (folder / "result.json").exists)
        return 0
    log = paths.log_file
    if not log.exists():
        raise Unusable(f"there is no log yet: {log}")
    handle = _print_tail([log.with_name(log.name + suffix) for suffix in _OLDER], options.lines)
    if options.follow:
        _follow({log: handle}, lambda: False)
    return 0


def _find_run(paths: Paths, id: str) -> Path:
    """Return the directory of the run. Raises Unusable if there is none, or several."""
    runs = paths.state / "runs"
    names = sorted(path.name for path in runs.glob("*") if path.name.startswith(id)) if runs.exists() else []
    if id in names:
        names = [id]
    if len(names) != 1:
        what = (
            f"no run {id} is kept here" if not names else f"{len(names)} runs begin with {id}: {', '.join(names[:5])}"
        )
        raise Unusable(what)
    return runs / names[0]


def _print_tail(files: List[Path], lines: int) -> BinaryIO:
    """Print the last ``lines`` lines of the files, which follow each other. Return the last file, open at its end."""
    older = [file.read_bytes() for file in files[:-1] if file.exists()]
    handle = (files[-1] if files[-1].exists() else Path(os.devnull)).open("rb")
    texts = b"".join([*older, handle.read()])
    tail = texts.splitlines(keepends=True)[-lines:] if lines > 0 else []
    byte_writer()(b"".join(tail).replace(b"\0", b""))  # a hole of an output file reads as zero bytes
    sys.stdout.flush()
    return handle


def _follow(handles: Dict[Path, BinaryIO], is_over: Callable[[], bool]) -> None:
    """Print what is added to the files until ``is_over`` returns true, and a new file that takes the place of one."""
    while True:
        over = is_over()
        for path, handle in handles.items():
            _copy(handle)
            with contextlib.suppress(FileNotFoundError):  # within a rotation
                if not os.path.samestat(path.stat(), os.fstat(handle.fileno())):
                    handles[path] = path.open("rb")
                    handle.close()
                    _copy(handles[path])
        if over:
            return
        time.sleep(_EVERY_SECONDS)


def _copy(handle: BinaryIO) -> None:
    """Write the rest of the file to standard output."""
    write = byte_writer()
    while chunk := handle.read(_CHUNK):
        write(chunk)
    sys.stdout.flush()
