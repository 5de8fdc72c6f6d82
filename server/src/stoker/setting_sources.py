"""
Sources of settings: flags, the environment and a TOML file. Each value is checked for its type.

In every source, a secret setting has a second form, ``<name>_file``: a file that contains the value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stoker.json_values import parse_boolean
from stoker.model.errors import Invalid

#: Prefix of the environment variables of settings.
PREFIX = "STOKER_"
#: Minimum similarity of two names, from 0 to 1, for a spelling suggestion.
_LIKENESS = 0.75
#: Variables with the prefix that are not settings: of the settings file, the agent, the hooks and the `openstack`
#: command.
_OTHERS = frozenset(
    ("CONFIG", "TOKEN", "ROOT", "AGENT", "API_VERSION", "COMPLETE", "LOCAL_SERVER", "PROGRESS", "RUN", "RUN_DIR")
)

#: Setting → its unconverted value, and its source for error messages.
_Source = dict[str, tuple[Any, str]]


def merge(
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Path | None,
    types: Mapping[str, type],
    secrets: Collection[str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """
    Merge all sources and convert the values: flags take precedence over the environment, and the environment over the
    file. Return the values and their sources.

    ``types`` maps each setting to its type; ``secrets`` are the settings that have a file form. Raises Invalid with the
    name of the setting and the source of its value.
    """
    all_types = {**types, **{file_form(name): Path for name in secrets}}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source in (
        _from_file(file, all_types),
        _from_environment(environment, all_types),
        _from_flags(flags, all_types, secrets),
    ):
        for name in secrets:
            _resolve_secret(source, name)
        values.update({name: _typed(types[name], value, where) for name, (value, where) in source.items()})
        sources.update({name: where for name, (_, where) in source.items()})
    return values, sources


def file_form(name: str) -> str:
    """The name of the setting for a secret setting's file."""
    return f"{name}_file"


def _resolve_secret(source: _Source, name: str) -> None:
    """Replace the name of a secret's file with the file's content."""
    plain, in_file = source.get(name), source.pop(file_form(name), None)
    if plain and in_file:
        raise Invalid(f"{plain[1]} and {in_file[1]} exclude one another: give one of them")
    if in_file:
        path, where = in_file
        source[name] = (_read_secret(path, where), where)


def _read_secret(path: Any, where: str) -> str:
    """The content of a secret's file without surrounding white space. Raises Invalid."""
    file = Path(str(path)).expanduser()
    try:
        secret = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Invalid(f"{where}: cannot read {file}: {reason}") from None
    if not secret:
        raise Invalid(f"{where}: {file} is empty")
    return secret


def _from_file(file: Path | None, all_types: Mapping[str, type]) -> _Source:
    source: _Source = {}
    for name, value in _load_toml(file).items():
        if name not in all_types:
            raise Invalid(f"{file}: there is no setting {name!r}{suggest(name, all_types)}")
        source[name] = (value, f"{file}: {name}")
    return source


def suggest(name: str, names: Iterable[str], prefix: str = "") -> str:
    """A suggestion of the most similar setting, to end a sentence with; empty if none is similar."""
    close = get_close_matches(name, list(names), n=1, cutoff=_LIKENESS)
    return f"; did you mean {prefix}{close[0].upper() if prefix else close[0]}?" if close else ""


def unknown_variables(environment: Mapping[str, str], settings: Collection[str]) -> list[str]:
    """A warning for each variable with the prefix that is not a setting."""
    names = [name.removeprefix(PREFIX) for name in sorted(environment) if name.startswith(PREFIX)]
    return [
        f"{PREFIX}{name} is an unknown setting and is ignored{suggest(name.lower(), settings, PREFIX)}"
        for name in names
        if name.lower() not in settings and name not in _OTHERS and not name.startswith("TEST_")
    ]


def _from_environment(environment: Mapping[str, str], all_types: Mapping[str, type]) -> _Source:
    variables = {name: f"{PREFIX}{name.upper()}" for name in all_types}
    return {name: (environment[key], key) for name, key in variables.items() if key in environment}


def _from_flags(flags: Mapping[str, Any], all_types: Mapping[str, type], secrets: Collection[str]) -> _Source:
    """Raises Invalid for a secret: every user of the machine can read the command lines of its processes."""
    source = {name: (flags[name], f"--{name.replace('_', '-')}") for name in all_types if flags.get(name) is not None}
    for name, (value, flag) in source.items():
        variable = f"{PREFIX}{name.upper()}"
        if name in secrets:
            raise Invalid(f"{flag} would show a secret to every user of the machine: use {flag}-file or {variable}")
        if _has_password(value):
            raise Invalid(f"{flag} would show a password to every user of the machine: use {variable}")
    return source


def _has_password(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(urlsplit(value).password)
    except ValueError:
        return False


def _load_toml(file: Path | None) -> Mapping[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Invalid(f"cannot read the settings in {file}: {error}") from None


def _typed(kind: type, value: Any, where: str) -> Any:
    if kind is bool and not isinstance(value, bool):
        meaning = parse_boolean(str(value) or "no")
        if meaning is None:
            raise Invalid(f"{where} must be true or false, not {value!r}")
        return meaning
    if kind is int and (isinstance(value, bool) or not re.fullmatch(r"-?[0-9]+", str(value))):
        raise Invalid(f"{where} must be a whole number, not {value!r}")
    return kind(value)
