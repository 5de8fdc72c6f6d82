"""Hook of the group ``json-file``: writes each value of a map as JSON to the file that its key names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict

from stoker_agent import files
from stoker_agent.hook_contract import Change, HookRun, Result, read_text
from stoker_agent.steps import Steps, apply_steps


def apply(run: HookRun) -> Result:
    """Write the files whose content differs, and restore those of former configs; on DELETE restore all."""
    return undo(run) if run.is_removal else apply_steps(run, _apply)


check = preview = apply


def undo(run: HookRun) -> Result:
    """Restore what was at the paths before this deployment."""
    names = {item.name for item in run.memory.list("file")}
    result = apply_steps(run, _apply)
    if result.code:
        return result
    changes = [*result.changes]
    for path, text in _contents(run).items():
        # heat-agents and earlier versions of the agent recorded nothing: the content shows the files that they wrote.
        is_own = str(path) not in names and read_text(path) == text and not run.memory.is_used("file", str(path))
        if is_own and not run.is_dry:
            files.remove(path)
            changes.append(Change(str(path), diff="removed"))
    return Result.of(changes)


def _apply(run: HookRun, steps: Steps) -> None:
    contents = _contents(run)
    for path, text in contents.items():
        steps.file(path, text, mode=None, owner=None, shows_new=True)
    steps.undo(keep=[str(path) for path in contents])


def _contents(run: HookRun) -> Dict[Path, str]:
    return {Path(name): json.dumps(data, indent=4, sort_keys=True) for name, data in run.mapping().items()}
