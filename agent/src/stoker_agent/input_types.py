"""Values of a catalog entry's inputs: converted to their declared types, and checked against their constraints."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from stoker_agent.hook_contract import HookError, as_flag


def check_inputs(values: Mapping[str, Any], schema: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Return the inputs with defaults, each of its declared type. Raises HookError for a value that is not allowed."""
    checked = {}
    for declared in schema:
        name = declared["name"]
        value = values.get(name)
        if value is None:
            value = declared.get("default")
        if value is None:
            raise HookError(f"the input {name} needs a value")
        try:
            checked[name] = _CONVERT[declared["type"]](value)
        except (HookError, TypeError, ValueError):
            raise HookError(f"the input {name} must be of the type {declared['type']}") from None
        for constraint in declared.get("constraints") or ():
            problem = _find_violation(checked[name], constraint)
            if problem:
                raise HookError(f"the input {name} {constraint.get('description') or problem}")
    return checked


def _find_violation(value: Any, constraint: Mapping[str, Any]) -> Optional[str]:
    """Return how a value violates a constraint, or None."""
    texts = value if isinstance(value, list) else [value]
    if "allowed_values" in constraint and value not in constraint["allowed_values"]:
        return f"must be one of {constraint['allowed_values']}"
    if "allowed_pattern" in constraint:
        pattern = constraint["allowed_pattern"]
        if not all(re.fullmatch(pattern, str(text)) for text in texts):
            return f"must match {pattern}"
    limits = constraint.get("range") or constraint.get("length")
    if limits:
        size = value if "range" in constraint else len(value)
        if size < limits.get("min", size) or size > limits.get("max", size):
            return f"must be from {limits.get('min', 'any')} to {limits.get('max', 'any')}"
    return None


def _number(value: Any) -> Union[int, float]:
    number = float(value)
    return int(number) if number.is_integer() else number


def _string(value: Any) -> str:
    if isinstance(value, (dict, list)) or "\0" in str(value):
        raise ValueError(value)
    return str(value)


def _items(value: Any) -> List[str]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json.loads(value)
    items = value.split(",") if isinstance(value, str) else value
    return [str(item).strip() for item in items if str(item).strip()]


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


_CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "String": _string,
    "Number": _number,
    "Boolean": lambda value: as_flag(value, "it"),
    "CommaDelimitedList": _items,
    "Json": _json,
}
