"""
Golden images: the agent in a file system that is not running.

The image contains the program, the unit, Stoker's URL and CA, and a token, but no identity: each machine enrolls at its
first boot (``first_start``).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Optional

from stoker_agent import program_file
from stoker_agent.config import Paths, Unusable
from stoker_agent.files import inspect, link, write
from stoker_agent.first_start import Invitation, keep_invitation
from stoker_agent.systemd_unit import systemd_unit

_PROGRAM = "opt/stoker-agent/stoker-agent.pyz"
_UNIT = "etc/systemd/system/stoker-agent.service"
_WANTS = "etc/systemd/system/multi-user.target.wants/stoker-agent.service"
_LINK = "usr/local/bin/stoker-agent"
_CA_FILE = "etc/stoker-agent/ca.pem"


def install(
    top: Path, program: Path, url: str, token_file: Path, ca_file: Optional[Path], proxy_url: Optional[str] = None
) -> None:
    """
    Install the agent below ``top``, for the first boot. Repeatable.

    Raises Unusable if the image has an identity already, which all machines would share.
    """
    paths = Paths(*(top / path.relative_to("/") for path in Paths.of(None)))
    if paths.config.exists():
        raise Unusable(f"{paths.config} is there: this image is a server already, whose key all would share")
    token = token_file.read_text().strip()
    if not token:
        raise Unusable(f"{token_file} holds no token")
    keep_invitation(paths, Invitation(url.rstrip("/"), token, f"/{_CA_FILE}" if ca_file else None, proxy_url))
    write(top / _PROGRAM, program.read_bytes(), 0o755, folder_mode=0o755)
    unit = systemd_unit(["/usr/bin/env", "python3", f"/{_PROGRAM}", "run"])
    write(top / _UNIT, unit.encode(), 0o644, folder_mode=0o755)
    for path, target in ((top / _WANTS, _UNIT), (top / _LINK, _PROGRAM)):
        if inspect(path).kind == "absent":
            link(path, f"/{target}")
    if ca_file is not None:
        write(top / _CA_FILE, ca_file.read_bytes())


def own_program() -> Path:
    """Return the file of this program. Raises Unusable if it runs from its sources."""
    path = program_file.find()
    if path is None:
        raise Unusable(f"build the program first: {sys.executable} -m stoker_agent build stoker-agent.pyz")
    return path
