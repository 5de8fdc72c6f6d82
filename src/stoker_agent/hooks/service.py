"""
Hook of the group ``service``: a systemd unit, started or stopped, enabled or not, with a wait until it is healthy.

Settings, in the config's map or as inputs:

- ``name``: the unit (``.service`` is the default suffix);
- ``state``: ``started`` (default), ``stopped``, ``restarted`` or ``reloaded``; ``enabled``: true or false;
- ``unit``: the text of the unit's file, written to ``/etc/systemd/system``;
- ``wait``: seconds that the unit must stay active, at most 300 (default 2); ``health``: a command that must succeed
  within ``health_timeout`` seconds (default 60).

Undo stops and disables the unit, and removes the unit's file if the deployment wrote it.
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
    write_file,
)

_STATES = ("started", "stopped", "restarted", "reloaded")
_LONGEST_WAIT = 300.0


def apply(run: HookRun) -> Result:
    """Bring the unit into the state and wait until it is healthy."""
    if run.is_removal:
        return undo(run)
    settings = _settings(run)
    name = settings["name"]
    changes = _compare(run, settings)
    if settings.get("unit") is not None and not _unit_file(name).is_file():
        run.memory.store({"name": name, "unit": True})
    elif not run.memory.load():
        run.memory.store({"name": name, "unit": False})
    is_new_unit = any(change.item == str(_unit_file(name)) for change in changes)
    if is_new_unit:
        write_file(_unit_file(name), str(settings["unit"]), 0o644)
        _systemctl(run, "daemon-reload")
    if "enabled" in settings:
        _systemctl(run, "enable" if as_flag(settings["enabled"], "enabled") else "disable", name)
    state = settings["state"]
    if state == "stopped":
        _systemctl(run, "stop", name)
        return Result.of(changes)
    verb = {"restarted": "restart", "reloaded": "reload-or-restart"}.get(state) or (
        "restart" if is_new_unit else "start"
    )
    _systemctl(run, verb, name)
    _await_health(run, settings)
    return Result(changed=bool(changes) or state in ("restarted", "reloaded"), changes=changes)


def check(run: HookRun) -> Result:
    """Compare the unit with the state."""
    changes = _compare(run, _settings(run))
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Stop and disable the unit, and remove the file that the deployment wrote."""
    before = run.memory.load()
    if not before:
        return Result(changed=False)
    name = before["name"]
    run.call(["systemctl", "disable", "--now", name])
    if before["unit"] and _unit_file(name).is_file():
        _unit_file(name).unlink()
        _systemctl(run, "daemon-reload")
    run.memory.clear()
    return Result(changed=True, changes=[Change(name, diff="removed")])


def _settings(run: HookRun) -> Dict[str, Any]:
    find_command("systemctl")
    settings = run.settings("name")
    name = str(settings["name"])
    if name.startswith("-") or "/" in name:
        raise HookError(f"{name!r} is not the name of a unit")
    unit = name if "." in name else f"{name}.service"
    return {**settings, "name": unit, "state": choose_state(settings, _STATES)}


def _unit_file(name: str) -> Path:
    return Path("/etc/systemd/system") / name


def _show(run: HookRun, name: str) -> Dict[str, str]:
    """Return the unit's properties."""
    wanted = "LoadState,ActiveState,SubState,UnitFileState,ActiveEnterTimestampMonotonic,NRestarts,Result,Type"
    _, text = run.read(["systemctl", "show", "--property", wanted, "--", name])
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _compare(run: HookRun, settings: Dict[str, Any]) -> List[Change]:
    name = settings["name"]
    changes = []
    unit = settings.get("unit")
    if unit is not None:
        file = _unit_file(name)
        if not file.is_file() or file.read_text(errors="replace") != str(unit):
            changes.append(Change(str(file)))
    properties = _show(run, name)
    if "enabled" in settings:
        is_enabled = properties.get("UnitFileState") in ("enabled", "enabled-runtime", "alias")
        if is_enabled != as_flag(settings["enabled"], "enabled"):
            changes.append(Change(name, diff="disabled" if is_enabled else "enabled"))
    is_active = properties.get("ActiveState") in ("active", "activating", "reloading")
    if is_active == (settings["state"] == "stopped"):
        changes.append(Change(name, diff="stopped" if is_active else "started"))
    return changes


def _systemctl(run: HookRun, *words: str) -> None:
    code = run.call(["systemctl", *words])
    if code:
        if len(words) > 1:
            run.call(["systemctl", "status", "--no-pager", "--lines", "20", "--", words[-1]])
        raise HookError(f"systemctl {' '.join(words)}: exit {code}", code)


def _await_health(run: HookRun, settings: Dict[str, Any]) -> None:
    """Wait until the unit has been active for ``wait`` seconds and the health command succeeds. Raises HookError."""
    name = settings["name"]
    seconds = _seconds(settings.get("wait", 2), "wait")
    until = time.monotonic() + seconds
    restarts = _show(run, name).get("NRestarts")
    while True:
        properties = _show(run, name)
        has_ended = properties.get("Type") == "oneshot" and properties.get("Result") == "success"
        if properties.get("ActiveState") not in ("active", "activating", "reloading") and not has_ended:
            run.call(["journalctl", "--no-pager", "--lines", "30", "--unit", name])
            raise HookError(f"{name} is {properties.get('ActiveState')} ({properties.get('Result')})")
        if properties.get("NRestarts") != restarts:
            raise HookError(f"{name} ended and was restarted within {seconds:g} s")
        if time.monotonic() >= until:
            break
        time.sleep(min(0.2, seconds))
    if settings.get("health"):
        _await_command(run, str(settings["health"]), _seconds(settings.get("health_timeout", 60), "health_timeout"))


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
