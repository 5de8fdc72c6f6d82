"""
Hook of the group ``script``: runs an executable text with the inputs in its environment.

Outputs are the files ``$heat_outputs_path.NAME``. ``/bin/sh`` runs a text without an interpreter line. As in
heat-agents, the script itself is the file ``$HEAT_SCRIPT_WORKING/<id of the config>``.

The option ``check`` is a script that compares the server with what the config has made, with the same inputs: it exits
with 0 if they agree and with 1 if they differ, after it has printed the difference. It must not change the server.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

from stoker_agent.hook_contract import UNSUPPORTED, Change, HookError, HookRun, Result


def command(run: HookRun) -> Tuple[List[str], Dict[str, str]]:
    """Write the script and return the argv and the environment variables of its process. Raises HookError."""
    return _command(run, run.text())


def _command(run: HookRun, text: str) -> Tuple[List[str], Dict[str, str]]:
    script = run.write(run.id, text, 0o700)
    environment = {"HEAT_SCRIPT_WORKING": str(run.working), **run.environment()}
    return ([str(script)] if text.startswith("#!") else ["/bin/sh", str(script)]), environment


def apply(run: HookRun) -> Result:
    """Run the script."""
    argv, environment = command(run)
    return Result(run.call(argv, environment, folder=run.working))


def check(run: HookRun) -> Result:
    """Run the script of the option ``check``. Raises HookError without this option, and for an exit code above 1."""
    text = run.options.get("check")
    if not isinstance(text, str) or not text:
        raise HookError("not checkable: add the option `check`", UNSUPPORTED)
    argv, environment = _command(run, text)
    code, output = run.read(argv, environment, folder=run.working)
    if code not in (0, 1):
        raise HookError(f"the check script ended with {code}", code if code > 0 else 1)
    return Result.of([Change(run.name, diff=output)] if code else [])
