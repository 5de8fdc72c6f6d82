"""Ports of Neutron, which take the addresses of ports that they replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import NETWORK
from stoker_openstack.cloud.drivers.base import Result, Run, await_state
from stoker_openstack.cloud.drivers.network import NeutronDriver, NeutronKind, find_marked
from stoker_openstack.cloud.errors import CloudRefused
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.model import CloudKind

_PORTS = NeutronKind(CloudKind.PORT, "Port", "port", "/ports", frozenset({"network_id", "tenant_id", "project_id"}))
_OTHERS = "stoker:takes_over_from"


class PortDriver(NeutronDriver):
    """The driver of ports."""

    def __init__(self) -> None:
        super().__init__(_PORTS)

    def prepare(self, run: Run) -> None:
        """Take the addresses from the ports that this one replaces: Neutron assigns an address once."""
        for id in run.specification.get(_OTHERS) or ():
            marker = Marker(run.marker.site, str(id))
            other = find_marked(run, marker, _PORTS.path, _PORTS.list_key)
            if other is not None and other.get("fixed_ips"):
                try:
                    run.client.request(NETWORK, "PUT", f"{_PORTS.path}/{other['id']}", {"port": {"fixed_ips": []}})
                except CloudRefused as error:
                    if error.status != 404:
                        raise

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        if not run.specification.get(_OTHERS):
            return super().update(run, observed)
        self.prepare(run)
        try:
            return super().update(run, observed)
        except CloudRefused as error:
            if error.status == 409:  # the other port is just being created
                await_state(run, error)
            raise
