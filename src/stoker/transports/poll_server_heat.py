"""The agent polls Heat's ``resources/{name}/metadata`` call, with a user of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.transports.base import Party, Site


@dataclass(frozen=True, slots=True)
class PollServerHeat:
    metadata_name: str = "POLL_SERVER_HEAT"
    logs_in: bool = True

    def sections(self, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        login = site.login(party)
        return {
            "heat": {
                "user_id": login.user_id,
                "password": login.password,
                "auth_url": site.auth_url,
                "project_id": login.project_id,
                "stack_id": f"{party.stack_name}/{party.stack_id}",
                "resource_name": party.resource_name,
                "region_name": site.region,
            }
        }


transport = PollServerHeat()
