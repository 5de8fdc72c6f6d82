"""Hook of the group ``json-file``: writes each value of a map as JSON to the file that its key names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from stoker_agent import files
from stoker_agent.hook_contract import Change, HookRun, Result, read_text, undo_files, write_changed
from stoker_agent.hook_memory import describe_path


def apply(run: HookRun) -> Result:
    """Write the files whose content differs; on DELETE remove them."""
    if run.is_removal:
        return undo(run)
    changes = _compare(run)
    present = _files(run)
    for path, _, _ in present:
        run.memory.remember("file", str(path), **describe_path(path))
    write_changed(changes, present)
    names = {str(path) for path, _, _ in present}
    changes += undo_files(run, [item for item in run.memory.list("file") if item.name not in names])
    return Result.of(changes)


def check(run: HookRun) -> Result:
    """Compare the files with the map."""
    changes = _compare(run)
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Restore what was at the paths before this deployment."""
    items = run.memory.list("file")
    changes = undo_files(run, items)
    names = {item.name for item in items}
    for path, text, _ in _files(run):
        # Earlier versions of the agent recorded nothing, so the files that they wrote are known by their content.
        if str(path) not in names and read_text(path) == text and not run.memory.is_used("file", str(path)):
            files.remove(path)
            changes.append(Change(str(path), diff="removed"))
    return Result.of(changes)


def _files(run: HookRun) -> List[Tuple[Path, str, int]]:
    """Return path, content and mode of each file. An existing file keeps its mode."""
    contents: Dict[str, Any] = run.mapping()
    return [
        (Path(name), json.dumps(data, indent=4, sort_keys=True), _mode(Path(name))) for name, data in contents.items()
    ]


def _mode(path: Path) -> int:
    present = files.inspect(path)
    return present.mode if present.kind == "file" else 0o644


def _compare(run: HookRun) -> List[Change]:
    changes = []
    for path, text, _ in _files(run):
        differences = files.compare(path, text.encode(), None, None, None)
        changes += [Change(str(path), diff=difference) for difference in differences]
    return changes
