"""
The identity of this machine: what tells a copy of its disk, or two boots of one image, apart.

Identifiers leave the machine as digests only, because the machine's id is confidential (machine-id(5)).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Dict

from stoker_agent.files import read_map, write_json

_MACHINE_ID = Path("/etc/machine-id")
_CLOUD_INIT = Path("/var/lib/cloud/data/instance-id")
_BOARD = Path("/sys/class/dmi/id/product_uuid")
#: The files of an application container. Its image may contain a machine id, so all containers would share it.
_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
#: In any container, the board is the host's.
_CONTAINER_MANAGER = Path("/run/systemd/container")
#: The file of the state with the instance, and with the marks of the machine that made it.
_FILE = "instance"
#: What cloud-init calls the instance outside of clouds, on every machine.
_NO_CLOUD = ("", "nocloud", "iid-datasource-none")


def cloud_id() -> str:
    """Return the id of this machine in its cloud: that of cloud-init, else of the board; empty if there is none."""
    id = _read(_CLOUD_INIT)
    if id.lower() not in _NO_CLOUD:
        return id
    return "" if _is_container() or _CONTAINER_MANAGER.exists() else _read(_BOARD).lower()


def marks() -> Dict[str, str]:
    """Return the digest of each identifier that this machine has."""
    ids = {
        "machine_id": "" if _is_container() else _read(_MACHINE_ID).replace("uninitialized", ""),
        "cloud_id": cloud_id(),
    }
    return {name: _digest(name, value) for name, value in ids.items() if value}


def is_copy(state: Path) -> bool:
    """Return whether the state below ``state`` was copied from another machine."""
    stored = read_map(state / _FILE).get("marks")
    # An identifier on one side only proves nothing: cloud-init may have been installed meanwhile.
    return isinstance(stored, dict) and any(stored.get(name, mark) != mark for name, mark in marks().items())


def accept(state: Path) -> None:
    """Record that the state belongs to this machine, whose ids have changed."""
    stored = read_map(state / _FILE)
    if stored:
        write_json(state / _FILE, {**stored, "marks": marks()})


def identity(state: Path) -> Dict[str, str]:
    """
    Return the ``instance`` and the ``machine`` of the installation with its state below ``state``.

    The instance is random and stored, before its first use, with the agent's state; it replaces one that was copied
    from another machine. The machine derives from the machine and the path of the state, so that an installation that
    lost its state has it again; empty if the machine has no id of its own.
    """
    stored = {} if is_copy(state) else read_map(state / _FILE)
    present = marks()
    current: Dict[str, Any] = {"instance": str(stored.get("instance") or os.urandom(16).hex()), "marks": present}
    if stored != current:
        write_json(state / _FILE, current)
    machine = _digest(str(state), *(present[name] for name in sorted(present))) if "machine_id" in present else ""
    return {"instance": current["instance"], "machine": machine}


def _is_container() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(path.exists() for path in _CONTAINERS)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(("stoker-agent", *parts)).encode()).hexdigest()[:32]
