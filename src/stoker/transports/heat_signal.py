"""The result comes by Heat's ``resources/{name}/signal`` call, with the login that the config brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Party, Site


@dataclass(frozen=True, slots=True)
class HeatSignal:
    signal_name: str = "HEAT_SIGNAL"
    logs_in: bool = True
    awaits_signal: bool = True

    def signal_inputs(self, _tx: Tx, site: Site, party: Party) -> Mapping[str, Any]:
        return login_inputs(site, party)


def login_inputs(site: Site, party: Party) -> dict[str, Any]:
    login = site.login(party)
    return {
        "deploy_auth_url": site.auth_url,
        "deploy_username": login.username,
        "deploy_user_id": login.user_id,
        "deploy_password": login.password,
        "deploy_project_id": login.project_id,
        "deploy_region_name": site.region,
    }


transport = HeatSignal()
