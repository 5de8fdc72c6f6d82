"""``stoker-agent leave``: remove the agent from this machine, and this machine from Stoker."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Iterator, List, Optional

from stoker_agent import service
from stoker_agent.config import Config, Paths, Unusable, find
from stoker_agent.runs import Runs
from stoker_agent.web import Unreachable, call_once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--keep-data", action="store_true", help="keep the hooks, the state of runs and the log")
    parser.add_argument("--force", action="store_true", help="also while a run is in progress, which is interrupted")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """
    End the agent, give up this machine's key at Stoker, and remove the agent's files. Prints each step.

    The command can be repeated after an interruption at any point, also by ``kill -9``.

    Raises Unusable while a run is in progress, unless it is to be interrupted.
    """
    root, keep_data = options.root, options.keep_data
    if not root and os.geteuid() != 0:
        raise Unusable("run this as root (with sudo), or name the agent's directory with --root")
    if not options.force:
        _refuse_during_run(paths)
    config = _read_enrollment(paths)
    # The agent ends first: it would report the refusal of its key.
    removed = service.remove(paths, root)
    if config is not None:
        _tell(config)
    for path in _files(paths, root, keep_data=keep_data):
        removed += service.delete(path)
    for path in removed:
        print(f"removed {path}")
    if keep_data:
        print(f"kept {paths.hooks}, {paths.state} and {paths.logs}")
    if not removed:
        print("nothing to remove: no agent is installed here")
    return 0


def _refuse_during_run(paths: Paths) -> None:
    if service.find_process(paths) is None or not paths.state.is_dir():
        return
    count = len(Runs(paths.state).list_interrupted())
    if count:
        raise Unusable(
            f"{count} run{'s are' if count > 1 else ' is'} in progress: wait for the end, or interrupt with --force"
        )


def _read_enrollment(paths: Paths) -> Optional[Config]:
    try:
        return find(paths)
    except Unusable as error:
        print(f"stoker-agent: {error}: delete this server at Stoker by hand", file=sys.stderr)
        return None


def _tell(config: Config) -> None:
    """Tell Stoker (DELETE /agent/v1/server). Prints what is left to do there if Stoker cannot be reached."""
    name = config.name or config.server_id
    try:
        answer = call_once(config, "DELETE", "/agent/v1/server")
        problem = "" if answer.status in (200, 401) else answer.summary()
        left = answer.status == 200 and answer.json().get("status") == "LEFT"
    except (Unreachable, ValueError, AttributeError) as error:
        problem, left = str(error), False
    if problem:
        remedy = f"on Stoker's machine, run `stoker server delete {config.server_id}`"
        print(f"stoker-agent: cannot tell Stoker at {config.url} ({problem}): {remedy}", file=sys.stderr)
    elif left:
        print(f"server {name} has left; stacks still refer to it, so Stoker keeps its record")
    elif answer.status == 401:
        print(f"Stoker does not accept the key of server {name} any more: nothing to do there")
    else:
        print(f"server {name} is removed from Stoker")


def _files(paths: Paths, root: Optional[str], *, keep_data: bool) -> Iterator[Path]:
    """Yield what to remove. The link and the program are the last: until then, the command can be repeated."""
    data = () if keep_data else (paths.hooks, paths.state, paths.logs)
    etc: List[Path] = sorted(path for path in paths.config.parent.glob("*") if path != paths.hooks)
    yield from etc
    yield from data
    program = Path(root).absolute() / service.PROGRAM.name if root else service.PROGRAM
    yield from (program.with_name(f"{program.name}.{ending}") for ending in ("old", "new"))  # of an upgrade
    if _is_empty(paths.config.parent):
        yield paths.config.parent
    if not root:
        yield service.LINK
    yield program
    if _is_empty(program.parent):
        yield program.parent


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
