"""
The inputs and outputs of a config: their declarations in Heat's stored form, and the values of Stoker's own requests.

Heat's API and stacks accept any names and values, as in Heat. Stoker's own requests may use the names that a config
declares, with values of the declared types.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from stoker.deployments.derive import DEPLOY_PREFIX
from stoker.hot import parameter_values
from stoker.hot.words import clip, did_you_mean, list_few, quote_word
from stoker.model.config import INPUT_TYPES, Content, run_groups
from stoker.model.errors import Invalid

#: Types of inputs and outputs.
Type = Literal["String", "Number", "CommaDelimitedList", "Json", "Boolean"]
TYPES: tuple[str, ...] = get_args(Type)
_INPUT_KEYS = frozenset(("name", "type", "description", "default", "replace_on_change", "value", "secret"))
_OUTPUT_KEYS = frozenset(("name", "type", "description", "error_output"))


def inputs(entries: Any) -> tuple[dict[str, Any], ...]:
    """Return the checked inputs. Raises Invalid with the entry and its error."""
    return tuple(_input(entry, where) for where, entry in _check_entries(entries, "inputs", _INPUT_KEYS))


def outputs(entries: Any) -> tuple[dict[str, Any], ...]:
    """Return the checked outputs. Raises Invalid with the entry and its error."""
    checked = _check_entries(entries, "outputs", _OUTPUT_KEYS)
    return tuple(
        {**entry, "error_output": _flag(entry.get("error_output"), f"{where}.error_output")} for where, entry in checked
    )


def _check_entries(entries: Any, noun: str, keys: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each entry, and its members without null, except for a value."""
    if not isinstance(entries, list | tuple | None):
        raise Invalid(f"{noun} must be a list of maps, not {type(entries).__name__}")
    names = [entry.get("name") for entry in entries or () if isinstance(entry, Mapping)]
    if len(names) != len({str(name) for name in names}):
        raise Invalid(f"{noun} names an entry twice")
    for index, entry in enumerate(entries or ()):
        where = f"{noun}[{index}]"
        if not isinstance(entry, Mapping):
            raise Invalid(f"{where} must be a map with a name, not {type(entry).__name__}")
        for key in entry:
            if key not in keys:
                raise Invalid(f"{where} has the unknown key {key!r}; known are {', '.join(sorted(keys))}")
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            raise Invalid(f"{where} needs a name")
        kept = {key: value for key, value in entry.items() if value is not None or key == "value"}
        if "description" in kept:
            kept["description"] = coerce("String", kept["description"], f"{where}.description")
        kept["type"] = entry.get("type") or "String"
        if kept["type"] not in TYPES:
            raise Invalid(f"{where}.type {kept['type']!r} is none of {', '.join(TYPES)}")
        yield where, kept


def _input(kept: dict[str, Any], where: str) -> dict[str, Any]:
    for name in ("replace_on_change", "secret"):
        if _flag(kept.pop(name, None), f"{where}.{name}"):
            kept[name] = True
    # A default without a type may be any value, as in Heat, and an entry that Stoker has shown may be sent again.
    if kept["type"] != "String" and kept.get("default") not in (None, ""):
        kept["default"] = coerce(kept["type"], kept["default"], f"{where}.default")
    return kept


def _flag(value: Any, where: str) -> bool:
    return value if isinstance(value, bool) else value is not None and bool(coerce("Boolean", value, where))


def coerce(kind: str, value: Any, where: str) -> Any:
    """Convert ``value``, called ``where``, to the type ``kind`` as HOT converts a parameter. Raises Invalid."""
    try:
        return parameter_values.convert(INPUT_TYPES[kind], value)
    except ValueError as error:
        raise Invalid(f"{where}: {clip(str(error))}") from None


#: The groups whose hooks pass the inputs as environment variables, which a shell ignores if their names are invalid.
_IN_ENVIRONMENT = frozenset(("cfn-init", "script"))
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def check_values(
    content: Content,
    action: str,
    values: Mapping[str, Any],
    *,
    in_use: Collection[str] = (),
    allow_undeclared: bool = False,
) -> dict[str, Any]:
    """
    Return the values of a request, converted to the declared types; a String, the default, may be anything. Undeclared
    names are refused, except for those ``in_use`` or in a structured config. ``action``: selects the hooks of a
    component. Raises Invalid with all problems.
    """
    declared = {entry["name"]: entry for entry in content.inputs}
    names = {*declared, *in_use, *_references(content.config, content.input_key)}
    needs_variables = bool(run_groups(content.group, content.config, (action,)) & _IN_ENVIRONMENT)
    problems: list[str] = []
    undeclared: list[str] = []
    converted: dict[str, Any] = {}
    for name, value in values.items():
        converted[name] = value
        if problem := _describe_invalid(name, needs_variables):
            problems.append(problem)
        elif name not in names and not allow_undeclared:
            undeclared.append(name)
        elif name in declared:
            try:
                converted[name] = _convert(declared[name], value)
            except Invalid as error:
                problems.append(error.message)
    if undeclared:
        problems.append(_describe_undeclared(undeclared, sorted(names)))
    if problems:
        raise Invalid("; ".join(problems))
    return converted


def refuse_missing(content: Content, names: Iterable[Collection[str]]) -> None:
    """Raise Invalid if a required input has no value among the ``names`` that one of the runs has values for."""
    required = [
        entry["name"]
        for entry in content.inputs
        if entry.get("default") is None and "value" not in entry and not entry["name"].startswith(DEPLOY_PREFIX)
    ]
    if not required:
        return
    for present in names:
        if missing := [name for name in required if name not in present]:
            raise Invalid(
                f"The config needs a value for {list_few(map(quote_word, missing))}: give one (-i NAME=VALUE,"
                " input_values), or declare a default"
            )


def _describe_invalid(name: str, needs_variables: bool) -> str | None:
    if name.startswith(DEPLOY_PREFIX):
        return f"The input {quote_word(name)} is Stoker's own: names must not begin with {DEPLOY_PREFIX}"
    if needs_variables and not VARIABLE.fullmatch(name):
        return f"The input {quote_word(name)} cannot be an environment variable: use letters, digits and underscores"
    return None


def _convert(entry: Mapping[str, Any], value: Any) -> Any:
    name, kind = quote_word(entry["name"]), entry.get("type", "String")
    if kind == "String":
        return value
    try:
        return coerce(kind, value, f"The input {name} is a {kind}")
    except Invalid:
        if entry.get("secret"):
            raise Invalid(f"The value of the secret input {name} is no {kind}") from None
        raise


def _describe_undeclared(undeclared: Sequence[str], names: Collection[str]) -> str:
    hint = did_you_mean(undeclared[0], names) if len(undeclared) == 1 else ""
    has = hint or (f"; it has {list_few(map(quote_word, names))}" if names else "; it has no inputs")
    which = "it" if len(undeclared) == 1 else "them"
    allow = f"--allow-undeclared (allow_undeclared: true) passes {which} nevertheless"
    return f"The config declares no input {list_few(map(quote_word, undeclared))}{has}{' ' if hint else '; '}{allow}"


def _references(config: Any, key: str | None) -> Iterator[str]:
    """Yield the names that a structured config refers to by ``{key: name}``, as ``derive.substitute`` reads them."""
    if key is None:
        return
    if isinstance(config, Mapping):
        if len(config) == 1 and isinstance(name := config.get(key), str):
            yield name
        for value in config.values():
            yield from _references(value, key)
    elif isinstance(config, list | tuple):
        for item in config:
            yield from _references(item, key)
