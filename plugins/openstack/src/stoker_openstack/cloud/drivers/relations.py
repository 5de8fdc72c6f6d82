"""Interfaces of routers and associations of floating IPs: requests that relate two objects of Neutron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import NETWORK, suppressing
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, is_same
from stoker_openstack.cloud.drivers.references import resolve_body
from stoker_openstack.cloud.names import not_found
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import CloudKind

_FLOATING_IP = NOUNS["floating_ip"]


class RouterInterfaceDriver(Driver):
    """
    The driver of router interfaces.

    The external id is ``<router id>:subnet_id=<id>`` or ``<router id>:port_id=<id>``, as in Heat.
    """

    kind, noun = CloudKind.ROUTER_INTERFACE, Noun("RouterInterface", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        router, key, id = _parts(run.external_id)
        return _interface(run, router, key, id)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        router, key, id = self._resolve(run)
        present = _interface(run, router, key, id)
        return {**present, "id": f"{router}:{key}={id}"} if present else None

    def create(self, run: Run) -> Result:
        router, key, id = self._resolve(run)
        answer = run.client.request(NETWORK, "PUT", f"/routers/{router}/add_router_interface", {key: id})
        created = answer.json()
        run.record_created(f"{router}:{key}={id}", created)
        return Done(created)

    def delete(self, run: Run) -> Result:
        router, key, id = _parts(run.external_id)
        run.client.request(NETWORK, "PUT", f"/routers/{router}/remove_router_interface", {key: id})
        return Done(is_gone=True)

    def _resolve(self, run: Run) -> tuple[str, str, str]:
        body = resolve_body(run)
        key = "port_id" if body.get("port_id") else "subnet_id"
        return body["router_id"], key, body[key]


class FloatingIpAssociationDriver(Driver):
    """The driver of associations. The external id is ``<floating ip id>:<port id>``, as in Heat."""

    kind, noun = CloudKind.FLOATING_IP_ASSOCIATION, Noun("FloatingIPAssociation", NETWORK)

    def adopt(self, run: Run) -> Result:
        # Heat gives associations ids of its own, so the id follows from the specification.
        body = resolve_body(run)
        floating_ip, port = body["floatingip_id"], body["port_id"]
        observed = _FLOATING_IP.find(run.client, floating_ip)
        if observed is None or observed["port_id"] != port:
            raise not_found(self.noun.title, f"{floating_ip}:{port}")
        run.record_created(f"{floating_ip}:{port}", observed)
        return Done(observed)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        floating_ip = run.external_id.partition(":")[0]
        return _FLOATING_IP.find(run.client, floating_ip)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        return None  # the request can be repeated

    def create(self, run: Run) -> Result:
        body = resolve_body(run)
        floating_ip = body.pop("floatingip_id")
        answer = run.client.request(NETWORK, "PUT", f"/floatingips/{floating_ip}", {"floatingip": body})
        observed = answer.json()["floatingip"]
        run.record_created(f"{floating_ip}:{body.get('port_id') or ''}", observed)
        return Done(observed)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        body = resolve_body(run)
        former = run.external_id.partition(":")[0]
        if body["floatingip_id"] == former and is_same({**body, "floatingip_id": None}, observed):
            return Done(observed)
        if body["floatingip_id"] != former:
            _dissociate(run, former, observed)
        return self.create(run)

    def delete(self, run: Run) -> Result:
        floating_ip = run.external_id.partition(":")[0]
        observed = _FLOATING_IP.find(run.client, floating_ip)
        if observed is not None:
            _dissociate(run, floating_ip, observed)
        return Done(is_gone=True)


def _dissociate(run: Run, floating_ip: str, observed: Mapping[str, Any]) -> None:
    """Clear the port of a floating IP, unless another association has set it."""
    port = run.external_id.partition(":")[2]
    if observed.get("port_id") not in (None, "") and observed["port_id"] == (port or observed["port_id"]):
        with suppressing(404):
            run.client.request(NETWORK, "PUT", f"/floatingips/{floating_ip}", {"floatingip": {"port_id": None}})


def _parts(external_id: str) -> tuple[str, str, str]:
    router, _, relation = external_id.partition(":")
    key, _, id = relation.partition("=")
    return router, key, id


def _interface(run: Run, router: str, key: str, id: str) -> Mapping[str, Any] | None:
    """Return the interface of a router, in the form of the answer that created it."""
    query: list[tuple[str, str]] = [("device_id", router)]
    query.append(("id", id) if key == "port_id" else ("fixed_ips", f"subnet_id={id}"))
    ports = NOUNS["port"].list(run.client, query)
    if not ports:
        return None
    subnets = [address["subnet_id"] for address in ports[0]["fixed_ips"]]
    return {
        "id": router,
        "port_id": ports[0]["id"],
        "subnet_id": subnets[0] if subnets else None,
        "subnet_ids": subnets,
    }
