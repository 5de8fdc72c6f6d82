"""
Hook of the group ``service``: a systemd unit, started or stopped, enabled or not, with a wait until it is healthy.

Settings, in the config's map or as inputs:

- ``name``: the unit (``.service`` is the default suffix);
- ``state``: ``started`` (default), ``stopped``, ``restarted`` or ``reloaded``; ``enabled``: true or false;
- ``unit``: the text of the unit's file, written to ``/etc/systemd/system``;
- ``wait``: seconds that the unit must stay active, at most 300 (default 2); ``health``: a command that must succeed
  within ``health_timeout`` seconds (default 60).

Undo returns the unit to what it was before the deployment: its file, whether it runs and whether it is enabled. So does
an update that names another unit.
"""

from __future__ import annotations

import time

from stoker_agent.hook_contract import HookError, HookRun, as_flag, as_seconds, choose_state
from stoker_agent.steps import Steps, by_steps
from stoker_agent.units import Unit

TOOLS = ("systemctl",)
NEEDS_ROOT = True
_STATES = ("started", "stopped", "restarted", "reloaded")
_LONGEST_WAIT = 300.0


@by_steps
def apply(run: HookRun, steps: Steps) -> None:
    """Bring the unit into the state and wait until it is healthy."""
    settings = run.settings("name")
    name = str(settings["name"])
    if name.startswith("-") or "/" in name:
        raise HookError(f"{name!r} is not the name of a unit")
    state = choose_state(settings, _STATES)
    enabled = as_flag(settings["enabled"], "enabled") if settings.get("enabled") is not None else None
    wait = as_seconds(settings.get("wait", 2), "wait", _LONGEST_WAIT)
    health_timeout = as_seconds(settings.get("health_timeout", 60), "health_timeout", _LONGEST_WAIT)
    unit = Unit(steps, name)
    steps.undo(keep=[unit.name, str(unit.file)])
    is_new = settings.get("unit") is not None and steps.file(unit.file, str(settings["unit"]), owner=None)
    if is_new and not steps.is_dry:
        unit.reload_files()
    if state == "stopped":
        steps.stopped(name, enabled)
        return
    # A restart that the config requests at each run is no difference that a check finds.
    restart = is_new or (state == "restarted" and not steps.is_dry)
    has_changed = steps.service(name, restart, state == "reloaded" and not steps.is_dry, enabled, wait)
    if steps.is_dry:
        return
    if not has_changed:
        unit.await_stable(wait)
    if settings.get("health"):
        _await_command(run, str(settings["health"]), health_timeout)


check = preview = undo = apply


def _await_command(run: HookRun, command: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while run.call(["/bin/sh", "-c", command], run.environment()):
        if time.monotonic() >= until:
            raise HookError(f"the health command did not succeed within {seconds:g} s: {command}")
        time.sleep(1)
