"""``POLL_SERVER_CFN``: the agent polls CloudFormation's ``DescribeStackResource`` with its own EC2 key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.store.tx import Tx
from stoker.transports.base import Platform, TransportTarget


@dataclass(frozen=True, slots=True)
class PollServerCfn:
    """The metadata transport ``POLL_SERVER_CFN``."""

    metadata_name: str = "POLL_SERVER_CFN"

    def sections(self, _tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """Return the section ``cfn``: the API's URL, the EC2 key and the resource."""
        login = platform.login(target)
        return {
            "cfn": {
                "metadata_url": f"{platform.public_url}/cfn/v1/",
                "access_key_id": login.access_key,
                "secret_access_key": login.secret_key,
                "stack_name": target.stack_name,
                "path": f"{target.resource_name}.Metadata",
            }
        }


transport = PollServerCfn()
