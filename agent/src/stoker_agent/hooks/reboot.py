"""
Hook of the group ``reboot``: reboots the server, and succeeds when the agent runs again after the boot.

Settings, in the config's map or as inputs: ``only_if``, a path whose existence requires the reboot (for example
``/var/run/reboot-required``), and ``command`` (default ``systemctl reboot``, else ``reboot``). The agent runs the hook
again after the boot instead of reporting an interrupted run.
"""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path

from stoker_agent import files
from stoker_agent.hook_contract import Change, HookRun, Result

NEEDS_ROOT = True
#: The agent starts an interrupted run of this hook again.
RESUMES = True
_BOOT_ID, _FIRST_PROCESS = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/1/stat")
#: How long the reboot command may take until it ends this process.
_SECONDS = 600.0


def apply(run: HookRun) -> Result:
    """Reboot once: a second start after the boot reports success."""
    settings = run.settings()
    former, boot = run.state / run.id, _identify_boot()
    before = files.read(former)
    if before not in (None, boot):
        files.remove(former)
        return Result(changed=True, changes=[Change("reboot")])
    condition = settings.get("only_if")
    if condition and not Path(str(condition)).exists():
        return Result(changed=False)
    files.write(former, boot)
    default = "systemctl reboot" if shutil.which("systemctl") else "reboot"
    code = run.call(shlex.split(str(settings.get("command") or default)))
    if code:
        files.remove(former)
        return Result(code, changed=False)
    time.sleep(_SECONDS)
    files.remove(former)
    return Result(1, changed=False, reason=f"the server did not reboot within {_SECONDS:g} s")


def _identify_boot() -> bytes:
    """Return a text that differs after a reboot. A system container keeps the host's boot id, but starts process 1."""
    started = _FIRST_PROCESS.read_text().rpartition(") ")[2].split()[19]
    return f"{_BOOT_ID.read_text().strip()} {started}".encode()


def check(run: HookRun) -> Result:
    """Return whether the server needs the reboot."""
    condition = run.settings().get("only_if")
    is_due = bool(condition) and Path(str(condition)).exists()
    return Result(changed=is_due, changes=[Change("reboot")] if is_due else [])


preview = check
