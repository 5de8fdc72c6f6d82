"""Hook of the group ``json-file``: writes each value of a map as JSON to the file that its key names."""

from __future__ import annotations

import json
from pathlib import Path

from stoker_agent.hook_contract import HookRun, Result
from stoker_agent.steps import Steps, apply_steps


def apply(run: HookRun) -> Result:
    """Write the files whose content differs, and restore those of former configs; on DELETE restore all."""
    return apply_steps(run, _apply)


check = preview = undo = apply


def _apply(run: HookRun, steps: Steps) -> None:
    contents = {Path(name): json.dumps(data, indent=4, sort_keys=True) for name, data in run.mapping().items()}
    for path, text in contents.items():
        steps.file(path, text, mode=None, owner=None, shows_new=True)
    steps.undo(keep=[str(path) for path in contents])
