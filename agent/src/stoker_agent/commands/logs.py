"""``stoker-agent logs``: the agent's log, or the output of one run."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple

from stoker_agent.config import Paths, Unusable
from stoker_agent.terminal import byte_writer

_EVERY_SECONDS = 0.5
_CHUNK = 64 * 1024
#: The agent keeps two older files (``commands.run``).
_OLDER = (".2", ".1", "")


class _Place(NamedTuple):
    """How far a file was printed. A rotated log has another inode."""

    inode: int
    offset: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("-f", "--follow", action="store_true", help="print new lines until interrupted")
    parser.add_argument("--lines", type=int, default=100, metavar="N", help="lines to begin with (%(default)s)")
    parser.add_argument("--run", metavar="ID", help="the output of the run with this id, or with an id that begins so")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Print the log. Raises Unusable if there is none."""
    if options.run:
        folder = _find_run(paths, options.run)
        places = {file: _print_tail([file], options.lines) for file in (folder / "stdout", folder / "stderr")}
        if options.follow:
            _follow(places, (folder / "result.json").exists)
        return 0
    log = paths.log_file
    if not log.exists():
        raise Unusable(f"there is no log yet: {log}")
    place = _print_tail([log.with_name(log.name + suffix) for suffix in _OLDER], options.lines)
    if options.follow:
        _follow({log: place}, lambda: False)
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


def _print_tail(files: List[Path], lines: int) -> _Place:
    """Print the last ``lines`` lines of the files, which follow each other. Return the place in the last file."""
    inode = _inode(files[-1])
    texts = [file.read_bytes() if file.exists() else b"" for file in files]
    tail = b"".join(texts).splitlines(keepends=True)[-lines:] if lines > 0 else []
    byte_writer()(b"".join(tail).replace(b"\0", b""))  # a hole of an output file reads as zero bytes
    sys.stdout.flush()
    return _Place(inode, len(texts[-1]))


def _follow(places: Dict[Path, _Place], is_over: Callable[[], bool]) -> None:
    """Print what is added to the files until ``is_over`` returns true. A rotated file is read from its beginning."""
    while True:
        over = is_over()
        for file, place in places.items():
            inode = _inode(file)
            offset = place.offset if inode == place.inode else 0
            places[file] = _Place(inode, offset + _copy(file, offset))
        if over:
            return
        time.sleep(_EVERY_SECONDS)


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return 0


def _copy(file: Path, offset: int) -> int:
    """Write the file from ``offset`` to standard output, and return the number of bytes."""
    count, write = 0, byte_writer()
    try:
        with file.open("rb") as source:
            source.seek(offset)
            while chunk := source.read(_CHUNK):
                write(chunk)
                count += len(chunk)
    except FileNotFoundError:
        return 0
    sys.stdout.flush()
    return count
