"""Checks the options of a config for runs: user, limits, variables, order, undo, event sinks. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stoker.deployments.hook_check import DELIVERED
from stoker.hot.flaw import Flaw
from stoker.hot.sinks import list_sinks
from stoker.hot.words import clip
from stoker.model.errors import Invalid

#: The option with the names of deployments on the same server for which a run waits.
DEPENDS_ON = "depends_on"
#: The option that says what undoes a run: true for the hook, or the text of a script.
UNDO = "undo"
#: The option with the queues that receive the drift of a deployment, in the form of an environment's.
EVENT_SINKS = "event_sinks"
#: The group of scripts.
SCRIPT = "script"
#: Groups whose built-in hooks cannot undo, because their configs have no general inverse.
WITHOUT_UNDO = frozenset(
    ("ansible", "apply-config", "cfn-init", "chef", "hiera", "powershell", "puppet", "reboot", "salt", SCRIPT)
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Option(NamedTuple):
    is_valid: Callable[[Any], bool]
    expected: str


def _matches(pattern: str) -> Callable[[Any], bool]:
    compiled = re.compile(pattern)
    return lambda value: not isinstance(value, bool) and compiled.fullmatch(str(value)) is not None


def _between(least: int, most: int) -> Callable[[Any], bool]:
    is_whole = _matches("-?[0-9]{1,9}")
    return lambda value: is_whole(value) and least <= int(value) <= most


def _are_variables(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(_VARIABLE.fullmatch(str(name)) and "\0" not in str(text) for name, text in value.items())


_OPTIONS: Mapping[str, _Option] = {
    "user": _Option(lambda value: isinstance(value, str) and 0 < len(value) <= 255, "the name of a user"),
    "memory_max": _Option(_matches("0*[1-9][0-9]{0,14}[KMGT]?"), "a size such as 512M"),
    "cpu_max": _Option(_matches("0*[1-9][0-9]{0,5}%"), "a share of one CPU such as 50%"),
    "tasks_max": _Option(_between(1, 4194304), "a number of processes from 1 to 4194304"),
    "nice": _Option(_between(-20, 19), "a number from -20 to 19"),
    "private_tmp": _Option(lambda value: str(value).lower() in ("true", "false"), "true or false"),
    "limits": _Option(_matches("strict|best_effort"), "strict or best_effort"),
    "environment": _Option(_are_variables, "a map of environment variables"),
    DEPENDS_ON: _Option(lambda value: _names(value) is not None, "the name of a deployment, or a list of names"),
}


def check_options(options: Mapping[str, Any], group: Any = None) -> None:
    """
    Raise Invalid, with the name of the option, for a value that no agent accepts. Other options are the hook's.

    ``group`` is the group of the config.
    """
    for name, option in _OPTIONS.items():
        value = options.get(name)
        if value is not None and not option.is_valid(value):
            raise Invalid(f"The option {name} must be {option.expected}, not {clip(repr(value))}")
    try:
        list_sinks(options.get(EVENT_SINKS))
    except Flaw as error:
        raise Invalid(f"The option {error.sentence}") from None
    if group in WITHOUT_UNDO and read_undo(options) is True and options.get(DELIVERED) is None:
        raise Invalid(
            f"The option {UNDO} must be the text of a script that undoes the config, not true: the hook of the group"
            f" {group} cannot undo"
        )


def read_undo(options: Mapping[str, Any]) -> str | bool | None:
    """Return what undoes a run with these options: True for the hook, the text of a script, or None."""
    value = options.get(UNDO)
    if value in (None, False, ""):
        return None
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return True if value.strip().lower() == "true" else None
    return value if isinstance(value, str) else True


def depends_on(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the deployments for which a run with these options waits."""
    return _names(options.get(DEPENDS_ON)) or ()


def _names(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str) and value:
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    return None
