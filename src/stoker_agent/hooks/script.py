"""
Hook of the group ``script``: runs an executable text with the inputs in its environment.

Outputs are the files ``$heat_outputs_path.NAME``. ``/bin/sh`` runs a text without an interpreter line.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

from stoker_agent.hook_contract import HookRun, Result


def command(run: HookRun) -> Tuple[List[str], Dict[str, str]]:
    """Write the script and return the argv and the environment variables of its process. Raises HookError."""
    text = run.text()
    script = run.write(run.id, text, 0o700)
    return ([str(script)] if text.startswith("#!") else ["/bin/sh", str(script)]), run.environment()


def apply(run: HookRun) -> Result:
    """Run the script."""
    argv, environment = command(run)
    return Result(run.call(argv, environment))
