"""
``HEAT_SIGNAL``: the agent calls Heat's ``resources/{name}/signal`` with the login that the config contains.

The call of upstream agents does not name the run. Stoker's own users belong to one run each; users at a Keystone do
not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class HeatSignal:
    """The signal transport ``HEAT_SIGNAL``."""

    signal_name: str = "HEAT_SIGNAL"
    logs_in: bool = True
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """Return the login; the agent knows the resource from other ``deploy_*`` inputs."""
        return login_inputs(platform, target)


def login_inputs(platform: Platform, target: TransportTarget) -> dict[str, Any]:
    """Return the ``deploy_*`` inputs with which an agent logs in as the target's user."""
    login = platform.login(target)
    return {
        "deploy_auth_url": platform.auth_url,
        "deploy_username": login.username,
        "deploy_user_id": login.user_id,
        "deploy_password": login.password,
        "deploy_project_id": login.project_id,
        "deploy_region_name": platform.region,
    }


transport = HeatSignal()
