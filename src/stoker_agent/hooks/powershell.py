"""
Hook of the group ``powershell``: runs a PowerShell script with the inputs as environment variables.

Outputs are the files ``$env:heat_outputs_path.NAME``. ``HEAT_POWERSHELL_CMD`` replaces the command.
"""

from __future__ import annotations

import os

from stoker_agent.hook_contract import HookRun, Result, find_command


def apply(run: HookRun) -> Result:
    """Run the script. The exit code is that of the script."""
    script = run.write(f"{run.id}.ps1", run.text())
    command = os.environ.get("HEAT_POWERSHELL_CMD") or find_command("pwsh", "powershell")
    argv = [command, "-NoLogo", "-NoProfile", "-NonInteractive", "-File", str(script)]
    return Result(run.call(argv, run.environment(), folder=run.working))
