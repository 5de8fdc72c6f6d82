"""Ports of Neutron, which take the addresses of ports that they replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import suppressing
from stoker_openstack.cloud.drivers.base import Result, Run
from stoker_openstack.cloud.drivers.network import NeutronDriver, find_marked
from stoker_openstack.cloud.errors import CloudRefused
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.model import CloudKind

_OTHERS = "stoker:takes_over_from"


class PortDriver(NeutronDriver):
    """The driver of ports."""

    def __init__(self) -> None:
        super().__init__(CloudKind.PORT)

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        # The port that this one replaces is just being created.
        is_taking_over = run.specification.get(_OTHERS) and run.object.external_id is not None
        return super().may_pass(run, error) or bool(error.status == 409 and is_taking_over)

    def prepare(self, run: Run) -> None:
        """Take the addresses from the ports that this one replaces: Neutron assigns an address once."""
        for id in run.specification.get(_OTHERS) or ():
            marker = Marker(run.marker.site, str(id))
            other = find_marked(self.noun, run, marker)
            if other is not None and other.get("fixed_ips"):
                with suppressing(404):
                    self._send(run, "PUT", f"{self.noun.path}/{other['id']}", {"fixed_ips": []})

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        self.prepare(run)
        return super().update(run, observed)
