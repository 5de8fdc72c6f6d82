"""Associations of floating IPs with ports, and the forwarding of single ports of a floating IP."""

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
#: Keys of a port forwarding: its own in answers, its floating IP, and its port.
_KEY, _ADDRESS, _PORT = "port_forwarding", "floatingip_id", "internal_port_id"


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


class PortForwardDriver(Driver):
    """The driver of port forwardings. ``observed`` also has the id of the floating IP."""

    kind, noun = CloudKind.PORT_FORWARDING, Noun("FloatingIPPortForward", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        floating_ip = str(run.object.observed.get(_ADDRESS) or self._resolve(run)[_ADDRESS])
        present = run.client.find(NETWORK, f"{_path(floating_ip)}/{run.external_id}", _KEY)
        return {**present, _ADDRESS: floating_ip} if present else None

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        """Find the forwarding of the same external port, which a floating IP has once, to the same target."""
        wanted = self._resolve(run)
        floating_ip = wanted.pop(_ADDRESS)
        query = {name: wanted[name] for name in ("external_port", "protocol")}
        for present in run.client.list(NETWORK, _path(floating_ip), "port_forwardings", query=query):
            if is_same(wanted, present):
                return {**present, _ADDRESS: floating_ip}
        return None

    def create(self, run: Run) -> Result:
        body = self._resolve(run)
        floating_ip = body.pop(_ADDRESS)
        created = run.client.request(NETWORK, "POST", _path(floating_ip), {_KEY: body}).json()[_KEY]
        observed = {**created, _ADDRESS: floating_ip}
        run.record_created(str(created["id"]), observed)
        return Done(observed)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        wanted, floating_ip = self._resolve(run), str(observed[_ADDRESS])
        changes = {
            name: value for name, value in wanted.items() if name != _ADDRESS and not is_same(value, observed.get(name))
        }
        if not changes:
            return Done(observed)
        answer = run.client.request(NETWORK, "PUT", f"{_path(floating_ip)}/{run.external_id}", {_KEY: changes})
        return Done({**observed, **answer.json()[_KEY]})

    def delete(self, run: Run) -> Result:
        present = self.read(run)
        if present is not None:
            run.client.request(NETWORK, "DELETE", f"{_path(str(present[_ADDRESS]))}/{run.external_id}")
        return Done(is_gone=True)

    def _resolve(self, run: Run) -> dict[str, Any]:
        body = resolve_body(run)
        body[_PORT] = run.names.resolve("port", str(body[_PORT]))
        return body


def _path(floating_ip: str) -> str:
    return f"/floatingips/{floating_ip}/port_forwardings"
