"""Derived configs: a config with a deployment's values in it, ready for an agent. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from stoker.model.errors import UserParameterMissing

#: What tells facts that are added from an author's own inputs.
FACT = "deploy_"
#: Characters.
_TELLING = 4
#: In place of what is nobody's business, as Heat has it.
STARS = "******"
#: The input that says how many seconds a run may take.
TIMEOUT = "deploy_timeout"


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


def marked(
    inputs: Iterable[Mapping[str, Any]], hidden: Collection[str], names: Collection[str] = ()
) -> tuple[Mapping[str, Any], ...]:
    """
    Inputs, with those marked secret that are called so, or whose value tells one of the texts that are ``hidden``. What
    Stoker adds itself is no secret of an author's.
    """
    return tuple(
        {**entry, "secret": True}
        if not entry["name"].startswith(FACT) and (entry["name"] in names or tells(entry.get("value"), hidden))
        else entry
        for entry in inputs
    )


def tells(value: Any, hidden: Collection[str]) -> bool:
    """Whether a value is one of these texts, or has one in it that is too long to be there by chance."""
    if not hidden or value is None:
        return False
    text = value if isinstance(value, str) else str(value)
    return any(text == each or (len(each) >= _TELLING and each in text) for each in hidden)


def without_secrets(values: Mapping[str, Any], declared: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Values as others may see them: those of inputs that are marked secret are starred out."""
    secret = {entry["name"] for entry in declared if entry.get("secret")}
    return starred(values, secret) if secret else values


def starred(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """With stars in place of the values that are called so."""
    return {name: STARS if name in names else value for name, value in values.items()}


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
