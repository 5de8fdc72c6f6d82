"""Networks, subnets, ports, routers and floating IPs: objects of Neutron that one request creates or changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import NETWORK
from stoker_openstack.cloud.drivers.agents import assign_agents
from stoker_openstack.cloud.drivers.base import UNKNOWN_FAULT, Driver, Result, Run, is_same
from stoker_openstack.cloud.drivers.references import resolve_body
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import CloudKind

#: The members of each kind that cannot be changed, besides the project.
_FIXED: Mapping[CloudKind, tuple[str, ...]] = {
    CloudKind.NETWORK: (),
    CloudKind.SUBNET: (
        "network_id",
        "ip_version",
        "cidr",
        "subnetpool_id",
        "prefixlen",
        "ipv6_ra_mode",
        "ipv6_address_mode",
    ),
    CloudKind.PORT: ("network_id",),
    CloudKind.ROUTER: ("ha",),
    CloudKind.FLOATING_IP: ("floating_network_id", "subnet_id", "floating_ip_address", "dns_name", "dns_domain"),
    CloudKind.SECURITY_GROUP: (),
}
_PROJECT = ("tenant_id", "project_id")
_BUILDING, _BROKEN = ("BUILD", "PENDING_CREATE", "PENDING_UPDATE"), "ERROR"


class NeutronDriver(Driver):
    """The driver of networks, subnets, ports, routers, floating IPs or security groups."""

    def __init__(self, kind: CloudKind) -> None:
        self.kind = kind
        self.noun = NOUNS[kind]
        self._fixed = (*_FIXED[kind], *_PROJECT)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        return find_marked(self.noun, run, run.marker)

    def create(self, run: Run) -> Result:
        self.prepare(run)
        body = resolve_body(run)
        body.pop("tags", None)
        body["description"] = run.marker.text  # the description of the user follows when the object has its tag
        created = self._send(run, "POST", self.noun.path, body)
        run.record_created(created["id"], created, resolved=True)
        return self.update(run, created)

    def prepare(self, run: Run) -> None:
        """Send requests that must precede the creation of the object."""

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        path = f"{self.noun.path}/{run.external_id}"
        tags = desired_tags(run)
        if not is_same(tags, observed.get("tags")):
            run.client.request(NETWORK, "PUT", f"{path}/tags", {"tags": tags})
            observed = {**observed, "tags": tags}
        body = resolve_body(run)
        body.pop("tags", None)
        body["description"] = body.get("description") or run.marker.text
        changes = {
            key: value
            for key, value in body.items()
            if key not in self._fixed and not is_same(value, observed.get(key))
        }
        if changes:
            observed = self._send(run, "PUT", path, changes)
        assign_agents(run)
        return self.check(run, observed)

    def fault_of(self, observed: Mapping[str, Any]) -> str | None:
        return UNKNOWN_FAULT if observed.get("status") == _BROKEN else None

    def is_changing(self, observed: Mapping[str, Any]) -> bool:
        return observed.get("status") in _BUILDING

    def _send(self, run: Run, verb: str, path: str, members: Mapping[str, Any]) -> dict[str, Any]:
        key = self.noun.item_key
        answer: dict[str, Any] = run.client.request(NETWORK, verb, path, {key: members}).json()[key]
        return answer


def desired_tags(run: Run) -> list[str]:
    """Return the user's tags, and the marker if the description is the user's own."""
    tags = [str(tag) for tag in run.specification.get("tags") or ()]
    return [*tags, run.marker.text] if run.specification.get("description") else tags


def find_marked(noun: Noun, run: Run, marker: Marker) -> Mapping[str, Any] | None:
    """Return the object with the marker in its description or tags."""
    return noun.find_marked(run.client, marker, {"description": marker.text}, {"tags": marker.text})
