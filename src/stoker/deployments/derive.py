"""Derived configs: a config with a deployment's values in it, ready for an agent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stoker.model.errors import UserParameterMissing


def derived_inputs(
    declared: Iterable[Mapping[str, Any]], values: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[dict[str, Any], ...]:
    """
    Heat's order: declared inputs, then values nobody declared, then the ``deploy_*`` facts.

    A declared input takes its value, else its default, else null.
    """
    given = [{**entry, "value": values.get(entry["name"], entry.get("default"))} for entry in declared]
    known = {entry["name"] for entry in given}
    extra = [{"name": name, "type": "String", "value": value} for name, value in values.items() if name not in known]
    added = [{"name": name, "type": "String", "value": value} for name, value in facts.items()]
    return (*given, *extra, *added)


def must_replace(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> str | None:
    """The input whose changed value asks for a new deployment instead of an updated one, if there is one."""
    old = {entry["name"]: entry.get("value") for entry in before}
    for entry in after:
        if entry.get("replace_on_change") and entry["name"] in old and old[entry["name"]] != entry.get("value"):
            return str(entry["name"])
    return None


def substitute(config: Any, values: Mapping[str, Any], *, key: str, strict: bool) -> Any:
    """
    A structured config with every ``{key: name}`` replaced by that input's value.

    Unknown names become null, or with ``strict`` raise UserParameterMissing.
    """
    if isinstance(config, Mapping):
        if len(config) == 1:
            ((only, name),) = config.items()
            if only == key and isinstance(name, str):
                if strict and name not in values:
                    raise UserParameterMissing(f"The Parameter ({name}) was not provided.")
                return values.get(name)
        return {name: substitute(value, values, key=key, strict=strict) for name, value in config.items()}
    if isinstance(config, list | tuple):
        return [substitute(item, values, key=key, strict=strict) for item in config]
    return config
