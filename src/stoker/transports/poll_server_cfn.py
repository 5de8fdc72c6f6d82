"""The agent polls CloudFormation's ``DescribeStackResource`` with an EC2 key of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Party, Site


@dataclass(frozen=True, slots=True)
class PollServerCfn:
    metadata_name: str = "POLL_SERVER_CFN"

    def sections(self, _tx: Tx, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        login = site.login(party)
        return {
            "cfn": {
                "metadata_url": f"{site.public_url}/cfn/v1/",
                "access_key_id": login.access_key,
                "secret_access_key": login.secret_key,
                "stack_name": party.stack_name,
                "path": f"{party.resource_name}.Metadata",
            }
        }


transport = PollServerCfn()
