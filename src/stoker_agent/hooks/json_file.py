"""Hook of the group ``json-file``: writes each value of a map as JSON to the file that its key names."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from stoker_agent.hook_contract import Change, HookRun, Result, write_changed


def apply(run: HookRun) -> Result:
    """Write the files whose content differs; on DELETE remove them."""
    if run.is_removal:
        return undo(run)
    changes = _compare(run)
    write_changed(changes, _files(run))
    return Result.of(changes)


def check(run: HookRun) -> Result:
    """Compare the files with the map."""
    changes = _compare(run)
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Remove the files."""
    changes = []
    for path, _, _ in _files(run):
        if path.exists():
            path.unlink()
            changes.append(Change(str(path), diff="removed"))
    return Result.of(changes)


def _files(run: HookRun) -> List[Tuple[Path, str, int]]:
    """Return path, content and mode of each file. An existing file keeps its mode."""
    contents: Dict[str, Any] = run.mapping()
    return [
        (Path(name), json.dumps(data, indent=4, sort_keys=True), _mode(Path(name))) for name, data in contents.items()
    ]


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777 if path.exists() else 0o644


def _compare(run: HookRun) -> List[Change]:
    changes = []
    for path, text, _ in _files(run):
        present = path.read_text(errors="replace") if path.is_file() else ""
        if not path.is_file() or present != text:
            lines = difflib.unified_diff(present.splitlines(), text.splitlines(), str(path), str(path), lineterm="")
            changes.append(Change(str(path), diff="\n".join(lines)))
    return changes
