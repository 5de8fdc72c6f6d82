"""Units of systemd: their state, changes of it, and the wait until they are stable."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Dict, Mapping

from stoker_agent.hook_contract import Commands, HookError

_PROPERTIES = "LoadState,ActiveState,SubState,UnitFileState,RemainAfterExit,NRestarts,Result,Type"


class UnitState(Dict[str, str]):
    """The properties of a unit, by name."""

    @property
    def is_active(self) -> bool:
        """Whether the unit runs, or starts."""
        return self.get("ActiveState") in ("active", "activating", "reloading")

    @property
    def is_as_started(self) -> bool:
        """Whether the unit runs, or ends by itself and has not failed."""
        return self.is_active or (self.ends_by_itself and self.get("ActiveState") == "inactive")

    @property
    def ends_by_itself(self) -> bool:
        """Whether the unit becomes inactive after its success. systemd then forgets that it ran."""
        return self.get("Type") == "oneshot" and self.get("RemainAfterExit") == "no"

    @property
    def is_enabled(self) -> bool:
        """Whether the unit starts with the machine."""
        return self.get("UnitFileState") in ("enabled", "enabled-runtime", "alias")

    @property
    def is_switchable(self) -> bool:
        """Whether the unit can be enabled, and is not."""
        return not self.is_enabled and self.get("UnitFileState") not in ("static", "indirect", "generated")

    @property
    def switches(self) -> Dict[str, bool]:
        """What ``switch_off`` and ``switch_on`` of the unit restore."""
        return {"active": self.is_active, "enabled": self.is_enabled}


class Unit:
    """A unit of this machine. ``name`` without a suffix is that of a service."""

    def __init__(self, tools: Commands, name: str) -> None:
        self._tools = tools
        self.name = name if "." in name else f"{name}.service"
        #: The file of a unit that the administrator defines.
        self.file = Path("/etc/systemd/system") / self.name

    def read(self) -> UnitState:
        """Return the unit's state."""
        _, text = self._tools.read(["systemctl", "show", "--property", _PROPERTIES, "--", self.name])
        return UnitState(dict(line.split("=", 1) for line in text.splitlines() if "=" in line))

    def control(self, verb: str, *flags: str) -> None:
        """Change the unit by ``systemctl``. Raises HookError, after the unit's last messages."""
        code = self._tools.call(["systemctl", verb, *flags, self.name])
        if code:
            self._print_journal()
            raise HookError(f"systemctl {verb} {self.name}: exit {code}", code)

    def reload_files(self) -> None:
        """Let systemd read its files again. Raises HookError."""
        code = self._tools.call(["systemctl", "daemon-reload"])
        if code:
            raise HookError(f"systemctl daemon-reload: exit {code}", code)

    def await_stable(self, seconds: float) -> None:
        """Wait until the unit has been active for so many seconds. Raises HookError, after the unit's last messages."""
        until = time.monotonic() + seconds
        restarts = self.read().get("NRestarts")
        while True:
            state = self.read()
            if not state.is_as_started:
                self._print_journal()
                raise HookError(f"{self.name} is {state.get('ActiveState')} ({state.get('Result')})")
            if state.get("NRestarts") != restarts or state.get("SubState") == "auto-restart":
                self._print_journal()
                raise HookError(f"{self.name} ended and was restarted within {seconds:g} s")
            if time.monotonic() >= until:
                return
            time.sleep(min(0.2, seconds))

    def differs(self, before: Mapping[str, Any]) -> bool:
        """Whether the unit is not as it was before."""
        return self.read().switches != before

    def switch_off(self, before: Mapping[str, Any]) -> None:
        """Disable and stop the unit, unless it was enabled or ran before. Raises HookError."""
        state = self.read()
        if state.is_enabled and not before["enabled"]:
            self.control("disable", "--quiet")
        if state.is_active and not before["active"]:
            self.control("stop")

    def switch_on(self, before: Mapping[str, Any], *, has_new_file: bool = False) -> None:
        """
        Start and enable the unit, if it ran or was enabled before. Raises HookError.

        With ``has_new_file``, it starts again, because its file was restored.
        """
        state = self.read()
        if state.get("LoadState") != "loaded":
            return  # its package was removed
        if before["active"] and (has_new_file or not state.is_active):
            self.control("restart")
        if before["enabled"] and not state.is_enabled:
            self.control("enable", "--quiet")

    def _print_journal(self) -> None:
        _, text = self._tools.read(["journalctl", "--no-pager", "--quiet", "--lines", "30", "--unit", self.name])
        print(text, end="", file=sys.stderr, flush=True)
