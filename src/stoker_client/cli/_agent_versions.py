"""Descriptions of agents' versions and of their upgrades."""

from collections.abc import Mapping
from typing import Any


def version_text(server: Mapping[str, Any]) -> str:
    """Return the agent's version, with a mark if it is not the service's."""
    version = server.get("agent_version") or ""
    return f"{version} (outdated)" if version and server.get("agent_outdated") else str(version)


def upgrade_text(server: Mapping[str, Any]) -> str:
    """Return the state of the agent's last upgrade with its reason, or nothing."""
    upgrade = server.get("agent_upgrade")
    if not upgrade:
        return ""
    reason = upgrade.get("reason")
    return f"{upgrade['status']} ({upgrade['version']})" + (f": {reason}" if reason else "")
