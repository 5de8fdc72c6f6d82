"""
The entry ``stoker`` in clouds.yaml, the file OpenStack's clients look in.

Only that entry is ever touched: it is put in as text, so that other entries and comments stay as they are, and what
came of it is read again before it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

NAME = "stoker"


def default_path() -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "openstack" / "clouds.yaml"


def entry(login: Mapping[str, str]) -> dict[str, Any]:
    verification = {"cacert": login["cacert"]} if "cacert" in login else {}
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
        **verification,
    }


def offer(path: Path, wanted: Mapping[str, Any], state_dir: Path) -> str:
    """Put the entry in, or bring ours up to date. Returns a sentence on what was done."""
    marker = f"# written by stoker serve for {state_dir}"
    try:
        text = path.read_bytes().decode() if path.exists() else ""
        before = _document(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return f"left {path} alone: it cannot be read as YAML"
    known = before["clouds"]
    if known.get(NAME) == wanted:
        return f"{path} has the entry '{NAME}'"
    others = _without_ours(text, marker)
    if NAME in known and others == text:
        return f"left {path} alone: its entry '{NAME}' is another's; `stoker env` prints this one's login"
    changed = _with_entry(others, wanted, marker)
    try:
        right = changed is not None and _document(changed) == {**before, "clouds": {**known, NAME: wanted}}
    except yaml.YAMLError:
        right = False
    if changed is None or not right:
        return f"left {path} alone: no place for an entry was found; `stoker env` prints the login"
    try:
        _replace(path, changed)
    except OSError as error:
        return f"could not write {path}: {error.strerror}; `stoker env` prints the login"
    return f"{path} has the entry '{NAME}': export OS_CLOUD={NAME}"


def _document(text: str) -> dict[str, Any]:
    """All that the text says, ``clouds`` being a map also where it is left out."""
    said = yaml.safe_load(text) or {}
    if not isinstance(said, dict) or not isinstance(said.get("clouds") or {}, dict):
        raise yaml.YAMLError("clouds is no map")
    return {**said, "clouds": said.get("clouds") or {}}


def _member(node: yaml.Node | None, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    """The nodes of a key and its value, which know their places in the text."""
    members = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((key, value) for key, value in members if key.value == name), None)


def _without_ours(text: str, marker: str) -> str:
    """The text without our entry; as it is where the line before the entry isn't our marker."""
    clouds = _member(yaml.compose(text, yaml.SafeLoader), "clouds")
    ours = clouds and _member(clouds[1], NAME)
    if not ours:
        return text
    mark = ours[0].start_mark
    lines = text.splitlines(keepends=True)
    if mark.line == 0 or lines[mark.line - 1].strip() != marker:
        return text
    end = mark.line + 1
    while end < len(lines) and lines[end].startswith(" " * (mark.column + 1)):
        end += 1
    return "".join(lines[: mark.line - 1] + lines[end:])


def _with_entry(text: str, wanted: Mapping[str, Any], marker: str) -> str | None:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    clouds = _member(yaml.compose(text, yaml.SafeLoader), "clouds")
    if clouds is None:
        lines.append(f"clouds:{newline}")
        at, indent = len(lines), 2
    elif isinstance(clouds[1], yaml.MappingNode) and clouds[1].value and not clouds[1].flow_style:
        first = clouds[1].value[0][0].start_mark
        at, indent = first.line, first.column
    elif clouds[1].value == "":
        at, indent = clouds[0].end_mark.line + 1, 2
    else:
        return None  # an entry on a single line
    body = [marker, *yaml.safe_dump({NAME: dict(wanted)}, sort_keys=False).splitlines()]
    return "".join([*lines[:at], *(f"{' ' * indent}{line}{newline}" for line in body), *lines[at:]])


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = path.resolve()
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(target)
