"""The entry ``stoker`` in clouds.yaml, the file that OpenStack's clients read."""

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
    Write the file with the entry, unless it exists. Returns a sentence on the result.

    A file that Stoker wrote for ``state_dir``, and to which nobody has added another cloud, is written again.
    """
    marker = f"# written by stoker serve for {state_dir}\n"
    try:
        before = path.read_bytes().decode() if path.exists() else marker
        document = yaml.safe_load(before) or {"clouds": {NAME: None}}
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return f"left {path} alone: it cannot be read as YAML; `stoker env` prints the login"
    clouds = document.get("clouds") if isinstance(document, dict) else None
    entries = clouds if isinstance(clouds, dict) else {}
    if entries.get(NAME) == content:
        return f"{path} has the entry '{NAME}'"
    if not before.startswith(marker) or [*document, *entries] != ["clouds", NAME]:
        return f"left {path} alone, because it exists; `stoker env` prints the login"
    try:
        text = yaml.safe_dump({"clouds": {NAME: dict(content)}}, sort_keys=False)
        private_file.replace(path, f"{marker}{text}".encode())
    except OSError as error:
        return f"could not write {path}: {error.strerror}; `stoker env` prints the login"
    return f"{path} has the entry '{NAME}': export OS_CLOUD={NAME}"
