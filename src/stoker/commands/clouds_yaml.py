"""
The entry ``stoker`` in clouds.yaml, the file that OpenStack's clients read.

The entry is inserted as text, so that all other lines stay byte for byte: a round trip through ruamel.yaml changes the
indentation and moves comments. The new text is parsed and compared before it replaces the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stoker import private_file

NAME = "stoker"


def default_path() -> Path:
    """The user's own file (XDG config home)."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "openstack" / "clouds.yaml"


def entry(login: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry for a login. ``login`` is the content of ``admin.json``."""
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


def offer(path: Path, content: Mapping[str, Any], state_dir: Path) -> str:
    """
    Insert the entry, or update it if Stoker wrote it for ``state_dir``. Returns a sentence on the result.

    A file that cannot be read, or that another program's entry occupies, stays unchanged.
    """
    marker = f"# written by stoker serve for {state_dir}"
    try:
        text = path.read_bytes().decode() if path.exists() else ""
        document = _parse(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return f"left {path} alone: it cannot be read as YAML"
    clouds = document["clouds"]
    if clouds.get(NAME) == content:
        return f"{path} has the entry '{NAME}'"
    others = _without_ours(text, marker)
    if NAME in clouds and others == text:
        return f"left {path} alone: its entry '{NAME}' is another's; `stoker env` prints this one's login"
    changed = _with_entry(others, content, marker)
    try:
        is_correct = changed is not None and _parse(changed) == {**document, "clouds": {**clouds, NAME: content}}
    except yaml.YAMLError:
        is_correct = False
    if changed is None or not is_correct:
        return f"left {path} alone: no place for an entry was found; `stoker env` prints the login"
    try:
        private_file.replace(path, changed.encode())
    except OSError as error:
        return f"could not write {path}: {error.strerror}; `stoker env` prints the login"
    return f"{path} has the entry '{NAME}': export OS_CLOUD={NAME}"


def _parse(text: str) -> dict[str, Any]:
    """Return the document. ``clouds`` is a map, also if the text has none. Raises YAMLError."""
    document = yaml.safe_load(text) or {}
    if not isinstance(document, dict) or not isinstance(document.get("clouds") or {}, dict):
        raise yaml.YAMLError("clouds is no map")
    return {**document, "clouds": document.get("clouds") or {}}


def _member(node: yaml.Node | None, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key and of its value, which have positions in the text, or None."""
    members = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((key, value) for key, value in members if key.value == name), None)


def _without_ours(text: str, marker: str) -> str:
    """Return the text without the entry. Without the marker in the line before the entry, the text is unchanged."""
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


def _with_entry(text: str, content: Mapping[str, Any], marker: str) -> str | None:
    """Return the text with the entry, or None if ``clouds`` is not in block style."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    clouds = _member(yaml.compose(text, yaml.SafeLoader), "clouds")
    if clouds is None:
        lines.append(f"clouds:{newline}")
        position, indent = len(lines), 2
    elif isinstance(clouds[1], yaml.MappingNode) and clouds[1].value and not clouds[1].flow_style:
        first = clouds[1].value[0][0].start_mark
        position, indent = first.line, first.column
    elif clouds[1].value == "":
        position, indent = clouds[0].end_mark.line + 1, 2
    else:
        return None
    body = [marker, *yaml.safe_dump({NAME: dict(content)}, sort_keys=False).splitlines()]
    return "".join([*lines[:position], *(f"{' ' * indent}{line}{newline}" for line in body), *lines[position:]])
