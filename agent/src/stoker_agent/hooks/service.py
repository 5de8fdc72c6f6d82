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

import sys
import time
from pathlib import Path
from typing import Any, Dict, List

from stoker_agent import originals
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
from stoker_agent.hook_memory import Item

TOOLS = ("systemctl",)
NEEDS_ROOT = True
_STATES = ("started", "stopped", "restarted", "reloaded")
_LONGEST_WAIT = 300.0


def apply(run: HookRun) -> Result:
    """Bring the unit into the state and wait until it is healthy."""
    if run.is_removal:
        return undo(run)
    settings = _settings(run)
    name = settings["name"]
    if any(item.name != name for item in run.memory.list("service")):
        undo(run)
    changes = _compare(run, settings)
    if settings.get("unit") is not None:
        run.memory.remember("file", str(_unit_file(name)), **originals.describe(_unit_file(name)))
    properties = _show(run, name)
    run.memory.remember("service", name, active=_is_active(properties), enabled=_is_enabled(properties))
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
    has_run = state in ("restarted", "reloaded") or _ends_by_itself(_show(run, name))
    return Result(changed=bool(changes) or has_run, changes=changes)


def check(run: HookRun) -> Result:
    """Compare the unit with the state."""
    changes = _compare(run, _settings(run))
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Return the unit to what it was before the deployment."""
    changes: List[Change] = []
    for item in run.memory.list("service"):
        files = [file for file in run.memory.list("file") if file.name == str(_unit_file(item.name))]
        if run.memory.release(item):
            changes.append(_undo(run, item, files))
            run.memory.forget(item)
            continue
        for file in files:  # another deployment runs the unit, with this file if it has none of its own
            if run.memory.release(file):
                run.memory.forget(file)
    return Result.of(changes)


def _undo(run: HookRun, item: Item, files: List[Item]) -> Change:
    name, before = item.name, item.before
    properties = _show(run, name)
    if _is_enabled(properties) and not before["enabled"]:
        _systemctl(run, "disable", name)
    if _is_active(properties) and not before["active"]:
        _systemctl(run, "stop", name)
    effect = ""
    for file in files:
        if run.memory.release(file):
            effect = originals.restore(Path(file.name), file.before)
            run.memory.forget(file)
            _systemctl(run, "daemon-reload")
    if before["active"] and (effect or not _is_active(properties)):
        _systemctl(run, "restart", name)
    if before["enabled"] and not _is_enabled(properties):
        _systemctl(run, "enable", name)
    return Change(name, diff=effect or "restored")


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
    wanted = "ActiveState,UnitFileState,RemainAfterExit,NRestarts,Result,Type"
    _, text = run.read(["systemctl", "show", "--property", wanted, "--", name])
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _is_active(properties: Dict[str, str]) -> bool:
    return properties.get("ActiveState") in ("active", "activating", "reloading")


def _is_as_started(properties: Dict[str, str]) -> bool:
    """Whether the unit runs, or ends by itself and has not failed."""
    return _is_active(properties) or (_ends_by_itself(properties) and properties.get("ActiveState") == "inactive")


def _ends_by_itself(properties: Dict[str, str]) -> bool:
    """Whether the unit becomes inactive after its success. systemd then forgets that it ran."""
    return properties.get("Type") == "oneshot" and properties.get("RemainAfterExit") == "no"


def _is_enabled(properties: Dict[str, str]) -> bool:
    return properties.get("UnitFileState") in ("enabled", "enabled-runtime", "alias")


def _compare(run: HookRun, settings: Dict[str, Any]) -> List[Change]:
    name = settings["name"]
    changes = []
    unit = settings.get("unit")
    if unit is not None:
        file = _unit_file(name)
        if read_text(file) != str(unit):
            changes.append(Change(str(file)))
    properties = _show(run, name)
    if "enabled" in settings:
        is_enabled = _is_enabled(properties)
        if is_enabled != as_flag(settings["enabled"], "enabled"):
            changes.append(Change(name, diff="disabled" if is_enabled else "enabled"))
    if settings["state"] == "stopped":
        changes += [Change(name, diff="stopped")] if _is_active(properties) else []
    elif not _is_as_started(properties):
        changes.append(Change(name, diff="started"))
    return changes


def _systemctl(run: HookRun, *words: str) -> None:
    code = run.call(["systemctl", *words])
    if code:
        if len(words) > 1:
            _print_journal(run, words[-1])
        raise HookError(f"systemctl {' '.join(words)}: exit {code}", code)


def _print_journal(run: HookRun, name: str) -> None:
    """Print the unit's last messages to stderr."""
    _, text = run.read(["journalctl", "--no-pager", "--quiet", "--lines", "30", "--unit", name])
    print(text, end="", file=sys.stderr, flush=True)


def _await_health(run: HookRun, settings: Dict[str, Any]) -> None:
    """Wait until the unit has been active for ``wait`` seconds and the health command succeeds. Raises HookError."""
    name = settings["name"]
    seconds = _seconds(settings.get("wait", 2), "wait")
    until = time.monotonic() + seconds
    restarts = _show(run, name).get("NRestarts")
    while True:
        properties = _show(run, name)
        if not _is_as_started(properties):
            _print_journal(run, name)
            raise HookError(f"{name} is {properties.get('ActiveState')} ({properties.get('Result')})")
        if properties.get("NRestarts") != restarts:
            _print_journal(run, name)
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
