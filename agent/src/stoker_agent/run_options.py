"""The options of a config that say as which user, and within which limits, its run executes."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from stoker_agent.programs import CannotRun


class RunOptions(NamedTuple):
    """The options of one config. None and False: the run has no such limit."""

    #: Name of the user; None: the agent's own.
    user: Optional[str] = None
    #: Bytes, such as ``512M``, as systemd writes them.
    memory_max: Optional[str] = None
    #: A share of one CPU, such as ``50%``.
    cpu_max: Optional[str] = None
    #: Number of processes and threads.
    tasks_max: Optional[int] = None
    nice: Optional[int] = None
    private_tmp: bool = False
    #: Whether the run fails if the machine cannot enforce one of the limits.
    is_strict: bool = True

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> RunOptions:
        """Return the options of a document's entry. Raises CannotRun with the name of an invalid option."""
        options = entry.get("options")
        if not isinstance(options, dict):
            return cls()
        values: Dict[str, Any] = {}
        for name, parse in _PARSERS.items():
            value = options.get(name)
            if value is not None:
                try:
                    values[name] = parse(value)
                except (KeyError, TypeError, ValueError):
                    raise CannotRun(f"The option {name} cannot be {value!r:.100}") from None
        is_strict = values.pop("limits", True)
        return cls(is_strict=is_strict, **values)

    @property
    def is_plain(self) -> bool:
        """Whether the run needs no launcher."""
        return self._replace(is_strict=True) == RunOptions()


def _user(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _matching(pattern: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if not re.fullmatch(pattern, str(value)):
            raise ValueError
        return str(value).lstrip("0")  # which systemd takes for the sign of an octal number

    return parse


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        number = int(str(value))
        if isinstance(value, bool) or not least <= number <= most:
            raise ValueError
        return number

    return parse


def _flag(value: Any) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def _is_strict(value: Any) -> bool:
    return {"strict": True, "best_effort": False}[str(value)]


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "user": _user,
    "memory_max": _matching("0*[1-9][0-9]{0,14}[KMGT]?"),
    "cpu_max": _matching("0*[1-9][0-9]{0,5}%"),
    "tasks_max": _whole(1, 4194304),
    "nice": _whole(-20, 19),
    "private_tmp": _flag,
    "limits": _is_strict,
}
