"""Checks: whether a server still is as a deployment left it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from stoker.model.errors import Invalid

#: Names of the options of a config, and of the properties of a deployment.
INTERVAL, ENFORCE = "check_interval", "enforce"
#: The mode of hooks and agents that can check.
CHECK = "check"
#: Limits of the interval in seconds: the longest is 30 days.
SHORTEST_INTERVAL, LONGEST_INTERVAL = 5, 30 * 24 * 3600


class CheckState(StrEnum):
    """The result of the last check of a deployment."""

    IN_SYNC = "IN_SYNC"
    DRIFTED = "DRIFTED"
    UNKNOWN = "UNKNOWN"
    #: The config has no check, or its hook supports none.
    UNSUPPORTED = "UNSUPPORTED"


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How a deployment is checked. None: not set."""

    #: Seconds between two checks by the agent's own timer.
    interval: int | None = None
    #: Whether drift starts another run.
    enforce: bool | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CheckSettings:
        """Return the settings in the options of a config, or in the properties of a deployment. Raises Invalid."""
        interval, enforce = values.get(INTERVAL), values.get(ENFORCE)
        if enforce is not None and not isinstance(enforce, bool):
            raise Invalid(f"the option {ENFORCE} must be true or false, not {enforce!r:.100}")
        if interval is None:
            return cls(None, enforce)
        is_number = isinstance(interval, int | float) and not isinstance(interval, bool)
        if not is_number or not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
            raise Invalid(
                f"the option {INTERVAL} must be {SHORTEST_INTERVAL} to {LONGEST_INTERVAL} seconds,"
                f" not {interval!r:.100}"
            )
        return cls(int(interval), enforce)

    def over(self, other: CheckSettings) -> CheckSettings:
        """Return these settings, and those of ``other`` that are not set here."""
        return CheckSettings(
            other.interval if self.interval is None else self.interval,
            other.enforce if self.enforce is None else self.enforce,
        )


class Check(Struct, frozen=True, kw_only=True):
    """The checks of one deployment: their settings, and the last result."""

    deployment_id: str
    server_id: str
    #: The derived config that the result is about.
    config_id: str
    #: Seconds between two checks; None: checks run on request only.
    check_interval: int | None = None
    enforce: bool = False
    state: CheckState = CheckState.UNKNOWN
    #: Since when the deployment has the state.
    since: datetime
    #: When the agent last reported a result; agents report only changes, and requested checks.
    checked_at: datetime | None = None
    #: When a user requested the check that the agent has not answered yet.
    requested_at: datetime | None = None
    #: When the drift began that has not ended yet. A run in between does not end the drift, a check in sync does.
    drifted_at: datetime | None = None
    reason: str = ""
    #: The differences: maps with ``item``, ``outcome`` and ``diff``.
    changes: tuple[Mapping[str, Any], ...] = ()
    #: The number of remediations that did not end the drift, or ended it for a short time only.
    remediations: int = 0
    #: No remediation starts before this time.
    remediate_at: datetime | None = None
