"""The clouds.yaml of a server that a test starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write_clouds(folder: Path, entries: Mapping[str, Any]) -> Path:
    """Add entries to the clouds.yaml of the server in ``folder`` (``server.served``). Return the file."""
    file = folder / "home" / ".config" / "openstack" / "clouds.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    earlier = yaml.safe_load(file.read_text())["clouds"] if file.exists() else {}
    file.write_text(yaml.safe_dump({"clouds": {**earlier, **entries}}))
    return file
