"""Checks the body of a request to trigger before any lookup. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.model import canary
from stoker.model.canary import Canary
from stoker.model.errors import Invalid
from stoker.model.selectors import Selector, select
from stoker.model.trigger import Mode

#: Maximum length of an id in characters.
_ID = 64
_NAME = 255
#: Maximum number of servers of one trigger.
MOST = 100_000
#: Seconds: ten years.
_LONGEST = 315_360_000
#: Keys that name what a trigger runs. A resource needs its stack.
SOURCE_KEYS = ("stack", "resource", "deployment_id", "config_id")
_SOURCES = ("resource", "deployment_id", "config_id")
KNOWN = (
    *(
        "action",
        "stack",
        *_SOURCES,
        "servers",
        "labels",
        "selector",
        "input_values",
        "name",
        "signal_transport",
        "timeout",
    ),
    *("max_concurrent", "max_fail_percentage", "canary", "require_window", "mode", "allow_undeclared"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRequest:
    """
    A checked request. Exactly one of ``resource`` (with its ``stack``), ``deployment_id`` and ``config_id`` is set.
    """

    action: str | None = None
    stack: str | None = None
    resource: str | None = None
    deployment_id: str | None = None
    config_id: str | None = None
    servers: tuple[str, ...] | None = None
    #: Selects the servers by ``labels`` and ``selector`` of the request.
    selector: Selector | None = None
    input_values: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    signal_transport: str | None = None
    timeout: float | None = None
    max_concurrent: int | None = None
    max_fail_percentage: float = 100
    canary: Canary | None = None
    require_window: bool = False
    mode: Mode = Mode.APPLY
    #: Whether ``input_values`` may have names that the config does not declare.
    allow_undeclared: bool = False


def parse(body: Any) -> TriggerRequest:
    """Parse the body of a request to trigger, decoded from JSON. Raises Invalid with the wrong key."""
    if not isinstance(body, Mapping):
        raise Invalid(f"a trigger must be a map, not {type(body).__name__}")
    if unknown := sorted(set(body) - set(KNOWN)):
        raise Invalid(f"a trigger has no {unknown[0]!r:.100}; known are {', '.join(KNOWN)}")
    texts = {name: _text(body.get(name), name) for name in ("action", "stack", *_SOURCES, "name", "signal_transport")}
    sources = [name for name in _SOURCES if texts[name] is not None]
    if len(sources) != 1:
        raise Invalid("a trigger needs one of: stack and resource, deployment_id, config_id")
    if (texts["stack"] is None) is (texts["resource"] is not None):
        raise Invalid("a resource is named with its stack: stack (a name or an id) and resource")
    selector = select(labels(body.get("labels")), _selector_text(body.get("selector")))
    if selector is not None and body.get("servers") is not None:
        raise Invalid("servers are named one by one or by their labels and facts, not both")
    percentage = _number(body.get("max_fail_percentage"), "max_fail_percentage", 0, 100)
    return TriggerRequest(
        **texts,
        servers=_servers(body.get("servers")),
        selector=selector,
        input_values=_mapping(body.get("input_values"), "input_values"),
        timeout=_number(body.get("timeout"), "timeout", 1, _LONGEST),
        max_concurrent=_whole(body.get("max_concurrent"), "max_concurrent"),
        max_fail_percentage=100 if percentage is None else percentage,
        canary=canary.parse(body.get("canary")),
        require_window=flag(body.get("require_window"), "require_window"),
        mode=_mode(body.get("mode")),
        allow_undeclared=flag(body.get("allow_undeclared"), "allow_undeclared"),
    )


def flag(value: Any, name: str) -> bool:
    """Return a boolean value, False for None. Raises Invalid; ``name`` is the key in the message."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise Invalid(f"{name} must be true or false, not {value!r:.100}")


def labels(value: Any) -> Mapping[str, str] | None:
    """Return a map of labels, or None. Raises Invalid for an empty map, which would select every server."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(label, str) for label in value.values()):
        raise Invalid("labels must be a map of texts")
    if not value:
        raise Invalid("labels names none: every server would have them")
    return dict(value)


def _selector_text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Invalid(f"selector must be a string, not {type(value).__name__}")
    return value


def _mode(value: Any) -> Mode:
    try:
        return Mode(Mode.APPLY if value is None else value)
    except ValueError:
        raise Invalid(f"mode must be one of {', '.join(Mode)}, not {value!r:.100}") from None


def _servers(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(server, str) for server in value):
        raise Invalid("servers must be a list of names or ids")
    if not value:
        raise Invalid("servers names none")
    if len(value) > MOST:
        raise Invalid(f"servers may be {MOST}, not {len(value)}")
    for server in value:
        _text(server, "servers")
    return tuple(value)


def _text(value: Any, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a string, not {type(value).__name__}")
    longest = _ID if name.endswith("_id") else _NAME
    if not value or len(value) > longest or "\0" in value:
        raise Invalid(f"{name} must be 1 to {longest} characters, without NUL")
    return value


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"{name} must be a map, not {type(value).__name__}")
    return dict(value)


def _number(value: Any, name: str, least: float, most: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise Invalid(f"{name} must be a number from {least} to {most}, not {value!r:.100}")
    return value


def _whole(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise Invalid(f"{name} must be a whole number from 1 on, not {value!r:.100}")
    return value
