"""Networks, subnets, ports, routers and floating IPs: objects of Neutron that one request creates or changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stoker_openstack.cloud.client import NETWORK
from stoker_openstack.cloud.drivers.agents import assign_agents
from stoker_openstack.cloud.drivers.base import (
    DUE,
    STILL_WAITING,
    Done,
    Judgement,
    Result,
    Run,
    Wait,
    is_same,
)
from stoker_openstack.cloud.drivers.references import resolve_body
from stoker_openstack.cloud.drivers.stated import StatedDriver
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.markers import Marker, marker_of
from stoker_openstack.model import CloudKind, CloudObject


@dataclass(frozen=True, slots=True)
class NeutronKind:
    """One kind of Neutron's objects: its keys in bodies and paths, and the members that cannot be changed."""

    kind: CloudKind
    title: str
    key: str
    path: str
    fixed: frozenset[str]

    @property
    def list_key(self) -> str:
        """The key of a list of these objects."""
        return f"{self.key}s"


NEUTRON_KINDS = (
    NeutronKind(CloudKind.NETWORK, "Network", "network", "/networks", frozenset({"tenant_id", "project_id"})),
    NeutronKind(
        CloudKind.SUBNET,
        "Subnet",
        "subnet",
        "/subnets",
        frozenset(
            {
                "network_id",
                "ip_version",
                "cidr",
                "tenant_id",
                "project_id",
                "subnetpool_id",
                "prefixlen",
                "ipv6_ra_mode",
                "ipv6_address_mode",
            }
        ),
    ),
    NeutronKind(CloudKind.ROUTER, "Router", "router", "/routers", frozenset({"tenant_id", "project_id", "ha"})),
    NeutronKind(
        CloudKind.FLOATING_IP,
        "Floatingip",
        "floatingip",
        "/floatingips",
        frozenset(
            {
                "floating_network_id",
                "subnet_id",
                "floating_ip_address",
                "dns_name",
                "dns_domain",
                "tenant_id",
                "project_id",
            }
        ),
    ),
)
_BUILDING, _BROKEN = ("BUILD", "PENDING_CREATE", "PENDING_UPDATE"), "ERROR"


class NeutronDriver(StatedDriver):
    """The driver of one of NEUTRON_KINDS."""

    service = NETWORK

    def __init__(self, neutron: NeutronKind) -> None:
        self._neutron = neutron
        self.kind = neutron.kind
        self.title = neutron.title

    def read(self, run: Run) -> Mapping[str, Any] | None:
        return run.client.find(NETWORK, f"{self._neutron.path}/{run.external_id}", self._neutron.key)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        return find_marked(run, run.marker, self._neutron.path, self._neutron.list_key)

    def create(self, run: Run) -> Result:
        self.prepare(run)
        body = self._resolve(run)
        body.pop("tags", None)
        body["description"] = run.marker.text  # the description of the user follows when the object has its tag
        answer = run.client.request(NETWORK, "POST", self._neutron.path, {self._neutron.key: body})
        created = answer.json()[self._neutron.key]
        run.record_created(created["id"], created, resolved=True)
        return self.update(run, created)

    def prepare(self, run: Run) -> None:
        """Send requests that must precede the creation of the object."""

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        path = f"{self._neutron.path}/{run.external_id}"
        tags = desired_tags(run)
        if not is_same(tags, observed.get("tags")):
            run.client.request(NETWORK, "PUT", f"{path}/tags", {"tags": tags})
            observed = {**observed, "tags": tags}
        body = self._resolve(run)
        body.pop("tags", None)
        body["description"] = body.get("description") or run.marker.text
        changes = {
            key: value
            for key, value in body.items()
            if key not in self._neutron.fixed and not is_same(value, observed.get(key))
        }
        if changes:
            answer = run.client.request(NETWORK, "PUT", path, {self._neutron.key: changes})
            observed = answer.json()[self._neutron.key]
        assign_agents(run)
        return self._result(observed)

    def delete(self, run: Run) -> Result:
        run.client.request(NETWORK, "DELETE", f"{self._neutron.path}/{run.external_id}")
        return Done(is_gone=True)

    def refuse_broken(self, observed: Mapping[str, Any]) -> None:
        if observed.get("status") == _BROKEN:
            raise CloudFailure('Went to status ERROR due to "Unknown"', "ResourceInError", observed=observed)

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Judgement:
        if observed is None:
            return DUE
        self.refuse_broken(observed)
        return STILL_WAITING if observed.get("status") in _BUILDING else Judgement(Done(observed))

    def _result(self, observed: Mapping[str, Any]) -> Result:
        self.refuse_broken(observed)
        if observed.get("status") in _BUILDING:
            return Wait(self._neutron.list_key, observed=observed)
        return Done(observed)

    def _resolve(self, run: Run) -> dict[str, Any]:
        return resolve_body(run)


def desired_tags(run: Run) -> list[str]:
    """Return the user's tags, and the marker if the description is the user's own."""
    tags = [str(tag) for tag in run.specification.get("tags") or ()]
    return [*tags, run.marker.text] if run.specification.get("description") else tags


def find_marked(run: Run, marker: Marker, path: str, key: str) -> Mapping[str, Any] | None:
    """Return the object with the marker in its description or tags."""
    for query in ({"description": marker.text}, {"tags": marker.text}):
        for item in run.client.list(NETWORK, path, key, query=query):
            if marker_of(item) == marker:
                return item
    return None
