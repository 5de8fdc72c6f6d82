"""
The entry ``stoker`` in clouds.yaml, the file OpenStack's clients look in.

Only that entry is ever touched: it is put in as text, so that other entries and comments stay as they are, and what
came of it is read again before it is kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

NAME = "stoker"


def default_path() -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "openstack" / "clouds.yaml"


def entry(login: Mapping[str, str]) -> dict[str, Any]:
    return {
        "auth": {
            "auth_url": login["auth_url"],
            "username": login["username"],
            "password": login["password"],
            "project_name": login["project_name"],
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        },
        "region_name": "RegionOne",
        "identity_api_version": "3",
    }


def offer(path: Path, wanted: Mapping[str, Any], state_dir: Path) -> str:
    """Put the entry in, or bring ours up to date. Returns a sentence on what was done."""
    marker = f"# written by stoker serve for {state_dir}"
    try:
        text = path.read_text() if path.exists() else ""
        known = _clouds(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return f"left {path} alone: it cannot be read as YAML"
    if known.get(NAME) == wanted:
        return f"{path} has the entry '{NAME}'"
    if NAME in known and marker not in text:
        return f"left {path} alone: its entry '{NAME}' is another's; `stoker env` prints this one's login"
    changed = _with_entry(_without_ours(text, marker), wanted, marker)
    if changed is None or _clouds(changed) != {**known, NAME: wanted}:
        return f"left {path} alone: no place for an entry was found; `stoker env` prints the login"
    try:
        _replace(path, changed)
    except OSError as error:
        return f"could not write {path}: {error.strerror}; `stoker env` prints the login"
    return f"{path} has the entry '{NAME}': export OS_CLOUD={NAME}"


def _clouds(text: str) -> dict[str, Any]:
    said = yaml.safe_load(text) or {}
    if not isinstance(said, dict) or not isinstance(said.get("clouds") or {}, dict):
        raise yaml.YAMLError("clouds is no map")
    return dict(said.get("clouds") or {})


def _without_ours(text: str, marker: str) -> str:
    """The text without the block that begins with our marker."""
    kept, dropping = [], -1
    for line in text.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip())
        if line.strip() == marker:
            dropping = indent
            head = True
            continue
        if dropping >= 0:
            if head or indent > dropping or not line.strip():
                head = False
                continue
            dropping = -1
        kept.append(line)
    return "".join(kept)


def _with_entry(text: str, wanted: Mapping[str, Any], marker: str) -> str | None:
    found = re.search(r"^clouds:[ \t]*(#.*)?$", text, re.MULTILINE)
    if found is None:
        if re.search(r"^clouds:", text, re.MULTILINE):
            return None  # written in one line
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}clouds:\n{_block(wanted, marker, 2)}"
    first = re.search(r"^( +)\S", text[found.end() :], re.MULTILINE)
    indent = len(first.group(1)) if first else 2
    return f"{text[: found.end()]}\n{_block(wanted, marker, indent)}{text[found.end() :].removeprefix(chr(10))}"


def _block(wanted: Mapping[str, Any], marker: str, indent: int) -> str:
    body = yaml.safe_dump({NAME: dict(wanted)}, sort_keys=False)
    lines = [marker, *body.splitlines()]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = path.resolve()
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(target)
