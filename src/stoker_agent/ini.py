"""os-collect-config's own configuration file, as OpenStack's programs write such files."""

from __future__ import annotations

from typing import Dict, List, Union

Value = Union[str, List[str]]


def read_ini(text: str) -> Dict[str, Dict[str, Value]]:
    """
    By section, ``DEFAULT`` among them. ``-`` in a key is ``_``; a key that comes again has a list of all its values.
    Lines that are neither are passed over, as a machine must boot with what it has.
    """
    found: Dict[str, Dict[str, Value]] = {}
    section = found.setdefault("DEFAULT", {})
    key = ""
    for line in text.splitlines():
        plain = line.strip()
        if not plain or plain[0] in "#;":
            continue
        if plain.startswith("[") and plain.endswith("]"):
            section, key = found.setdefault(plain[1:-1].strip(), {}), ""
        elif line[0].isspace() and key:
            _add(section, key, plain)
        elif "=" in plain or ":" in plain:
            name, value = _split(plain)
            key = name.strip().replace("-", "_").lower()
            if value.strip():
                _add(section, key, value.strip())
    return found


def listed(value: Value) -> List[str]:
    """What is a list in such a file: values on lines of their own, or with commas between them."""
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
