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
from pathlib import Path
from typing import Any, Dict, List

from stoker_agent.hook_contract import (
    Change,
    HookError,
    HookRun,
    Result,
    as_flag,
    choose_state,
    find_command,
    read_text,
    write_file,
)
from stoker_agent.hook_memory import Item, describe_path, restore_path
from stoker_agent.units import Unit

TOOLS = ("systemctl",)
NEEDS_ROOT = True
_STATES = ("started", "stopped", "restarted", "reloaded")
_LONGEST_WAIT = 300.0


def apply(run: HookRun) -> Result:
    """Bring the unit into the state and wait until it is healthy."""
    if run.is_removal:
        return undo(run)
    settings = _settings(run)
    unit = Unit(run, settings["name"])
    if any(item.name != unit.name for item in run.memory.list("service")):
        undo(run)
    changes = _compare(unit, settings)
    if settings.get("unit") is not None:
        run.memory.remember("file", str(unit.file), **describe_path(unit.file))
    run.memory.remember("service", unit.name, **unit.describe())
    is_new_unit = any(change.item == str(unit.file) for change in changes)
    if is_new_unit:
        write_file(unit.file, str(settings["unit"]), 0o644)
        unit.reload_files()
    if "enabled" in settings:
        unit.control("enable" if as_flag(settings["enabled"], "enabled") else "disable")
    state = settings["state"]
    if state == "stopped":
        unit.control("stop")
        return Result.of(changes)
    verb = {"restarted": "restart", "reloaded": "reload-or-restart"}.get(state) or (
        "restart" if is_new_unit else "start"
    )
    unit.control(verb)
    unit.await_stable(_seconds(settings.get("wait", 2), "wait"))
    if settings.get("health"):
        _await_command(run, str(settings["health"]), _seconds(settings.get("health_timeout", 60), "health_timeout"))
    has_run = state in ("restarted", "reloaded") or unit.read().ends_by_itself
    return Result(changed=bool(changes) or has_run, changes=changes)


def check(run: HookRun) -> Result:
    """Compare the unit with the state."""
    settings = _settings(run)
    return Result.of(_compare(Unit(run, settings["name"]), settings))


preview = check


def undo(run: HookRun) -> Result:
    """Return the unit to what it was before the deployment."""
    changes: List[Change] = []
    for item in run.memory.list("service"):
        unit = Unit(run, item.name)
        files = [file for file in run.memory.list("file") if file.name == str(unit.file)]
        if run.memory.release(item):
            changes.append(_undo(run, unit, item, files))
            run.memory.forget(item)
            continue
        for file in files:  # another deployment runs the unit, with this file if it has none of its own
            if run.memory.release(file):
                run.memory.forget(file)
    return Result.of(changes)


def _undo(run: HookRun, unit: Unit, item: Item, files: List[Item]) -> Change:
    unit.switch_off(item.before)
    effect = ""
    for file in files:
        if run.memory.release(file):
            effect = restore_path(Path(file.name), file.before)
            run.memory.forget(file)
            unit.reload_files()
    unit.switch_on(item.before, has_new_file=bool(effect))
    return Change(unit.name, diff=effect or "restored")


def _settings(run: HookRun) -> Dict[str, Any]:
    find_command("systemctl")
    settings = run.settings("name")
    name = str(settings["name"])
    if name.startswith("-") or "/" in name:
        raise HookError(f"{name!r} is not the name of a unit")
    return {**settings, "name": name, "state": choose_state(settings, _STATES)}


def _compare(unit: Unit, settings: Dict[str, Any]) -> List[Change]:
    changes = []
    text = settings.get("unit")
    if text is not None and read_text(unit.file) != str(text):
        changes.append(Change(str(unit.file)))
    state = unit.read()
    if "enabled" in settings and state.is_enabled != as_flag(settings["enabled"], "enabled"):
        changes.append(Change(unit.name, diff="disabled" if state.is_enabled else "enabled"))
    if settings["state"] == "stopped":
        changes += [Change(unit.name, diff="stopped")] if state.is_active else []
    elif not state.is_as_started:
        changes.append(Change(unit.name, diff="started"))
    return changes


def _await_command(run: HookRun, command: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while run.call(["/bin/sh", "-c", command], run.environment()):
        if time.monotonic() >= until:
            raise HookError(f"the health command did not succeed within {seconds:g} s: {command}")
        time.sleep(1)


def _seconds(value: Any, name: str) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise HookError(f"{name} must be a number of seconds, not {value!r}") from None
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise HookError(f"{name} must be from 0 to {_LONGEST_WAIT:g} seconds, not {value!r}")
    return seconds
