"""
Retry policies of failed webhooks: Zaqar's policy, from ``_retry_policy`` of a queue or a subscription.

The first retries follow without delay, the next ones after the minimum delay, then with growing delays, and the last
ones after the maximum delay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stoker.messaging import checks
from stoker.model.errors import Invalid

#: Seconds between two growing delays of the linear function, which sets the number of retries of all functions.
_STEP = 5
_MOST_RETRIES, _LONGEST_PAUSE = 1000, 86_400
_DEFAULTS = {
    "retries_with_no_delay": 3,
    "minimum_delay_retries": 3,
    "minimum_delay": 5,
    "maximum_delay": 30,
    "maximum_delay_retries": 3,
}
_FUNCTIONS = ("linear", "arithmetic", "exponential", "geometric")


def check(policy: Any, name: str) -> None:
    """Raises Invalid for an invalid retry policy. None and an empty policy are valid."""
    if policy is None:
        return
    values = checks.mapping(policy, name)
    for key in _DEFAULTS:
        if values.get(key) is not None:
            most = _LONGEST_PAUSE if key in ("minimum_delay", "maximum_delay") else _MOST_RETRIES
            checks.whole(values[key], f"{name}: {key}", 0, most)
    function, override = values.get("retry_backoff_function"), values.get("ignore_subscription_override")
    if function is not None and function not in _FUNCTIONS:
        raise Invalid(f"{name}: retry_backoff_function must be one of {', '.join(_FUNCTIONS)}, not {function!r:.100}")
    if override is not None and not isinstance(override, bool):
        raise Invalid(f"{name}: ignore_subscription_override must be true or false, not {override!r:.100}")
    least, most = _value(values, "minimum_delay"), _value(values, "maximum_delay")
    if most - least < 2 * _STEP:
        raise Invalid(f"{name}: maximum_delay must be at least {2 * _STEP} more than minimum_delay")


def select_policy(of_queue: Mapping[str, Any] | None, of_subscription: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The subscription's policy, unless the queue's policy overrides it."""
    if of_queue and of_queue.get("ignore_subscription_override"):
        return of_queue
    return of_subscription or of_queue or {}


def pause(policy: Mapping[str, Any], failures: int) -> float | None:
    """Seconds to wait after ``failures`` failed attempts, including the first; None if there is no further attempt."""
    least, most = _value(policy, "minimum_delay"), _value(policy, "maximum_delay")
    growing = max(2, math.ceil((most - least) / _STEP))
    left = failures - 1
    for count, first in (
        (_value(policy, "retries_with_no_delay"), 0.0),
        (_value(policy, "minimum_delay_retries"), float(least)),
    ):
        if left < count:
            return first
        left -= count
    if left < growing:
        return _grow(policy.get("retry_backoff_function") or "linear", least, most, growing, left)
    return float(most) if left - growing < _value(policy, "maximum_delay_retries") else None


def _grow(function: str, least: int, most: int, steps: int, step: int) -> float:
    """The delay of ``step`` out of ``steps``, growing from ``least`` towards ``most``."""
    if function == "linear":
        return float(least + step * _STEP)
    if function == "arithmetic":
        return least + step * (step + 1) * (most - least) / (steps * (steps - 1))
    factor = (most / max(least, 1)) ** (1 / (steps - 1))
    first = max(least, 1) / (factor if function == "exponential" else 1)
    return float(min(most, first * factor**step))


def _value(policy: Mapping[str, Any], name: str) -> int:
    value: int | None = policy.get(name)
    return _DEFAULTS[name] if value is None else value
