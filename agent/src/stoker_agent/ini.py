"""Reads the configuration file of os-collect-config, in the INI format of oslo.config."""

from __future__ import annotations

from typing import Dict, List, Union

Value = Union[str, List[str]]


def read_ini(text: str) -> Dict[str, Dict[str, Value]]:
    """
    Return the options by section, including ``DEFAULT``.

    ``-`` in an option's name becomes ``_``. A repeated option has a list of its values. Invalid lines are ignored, so
    that an error in the file does not prevent the agent's start.
    """
    sections: Dict[str, Dict[str, Value]] = {}
    section = sections.setdefault("DEFAULT", {})
    key = ""
    for line in text.splitlines():
        plain = line.strip()
        if not plain or plain[0] in "#;":
            continue
        if plain.startswith("[") and plain.endswith("]"):
            section, key = sections.setdefault(plain[1:-1].strip(), {}), ""
        elif line[0].isspace() and key:
            _add(section, key, plain)
        elif "=" in plain or ":" in plain:
            name, value = _split(plain)
            key = name.strip().replace("-", "_").lower()
            if value.strip():
                _add(section, key, value.strip())
    return sections


def parse_list(value: Value) -> List[str]:
    """Split a list value: one item per line, or items separated by commas."""
    lines = value if isinstance(value, list) else [value]
    return [word.strip() for line in lines for word in line.split(",") if word.strip()]


def _split(line: str) -> List[str]:
    at = min(place for place in (line.find("="), line.find(":")) if place >= 0)
    return [line[:at], line[at + 1 :]]


def _add(section: Dict[str, Value], key: str, value: str) -> None:
    before = section.get(key)
    if before is None:
        section[key] = value
    else:
        section[key] = [*(before if isinstance(before, list) else [before]), value]
