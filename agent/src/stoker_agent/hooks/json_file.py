"""Hook of the group ``json-file``: writes each value of a map as JSON to the file that its key names."""

from __future__ import annotations

import json
from pathlib import Path

from stoker_agent.hook_contract import HookRun
from stoker_agent.steps import Steps, by_steps


@by_steps
def apply(run: HookRun, steps: Steps) -> None:
    """Write the files whose content differs, and restore those of former configs; on DELETE restore all."""
    contents = {Path(name): json.dumps(data, indent=4, sort_keys=True) for name, data in run.mapping().items()}
    for path, text in contents.items():
        steps.file(path, text, mode=None, owner=None, shows_new=True)
    steps.undo(keep=[str(path) for path in contents])


check = preview = undo = apply
