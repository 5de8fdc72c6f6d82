"""Port forwardings of floating IPs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import NETWORK
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, body_of, is_same
from stoker_openstack.cloud.drivers.references import resolve_references
from stoker_openstack.cloud.nouns import Noun
from stoker_openstack.model import CloudKind

_KEY, _FLOATING_IP, _PORT = "port_forwarding", "floatingip_id", "internal_port_id"


class PortForwardDriver(Driver):
    """The driver of port forwardings. ``observed`` also has the id of the floating IP."""

    kind, noun = CloudKind.PORT_FORWARDING, Noun("FloatingIPPortForward", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        floating_ip = str(run.object.observed.get(_FLOATING_IP) or self._resolve(run)[_FLOATING_IP])
        present = run.client.find(NETWORK, f"{_path(floating_ip)}/{run.external_id}", _KEY)
        return {**present, _FLOATING_IP: floating_ip} if present else None

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        """Find the forwarding of the same external port, which a floating IP has once, to the same target."""
        wanted = self._resolve(run)
        floating_ip = wanted.pop(_FLOATING_IP)
        query = {name: wanted[name] for name in ("external_port", "protocol")}
        for present in run.client.list(NETWORK, _path(floating_ip), "port_forwardings", query=query):
            if is_same(wanted, present):
                return {**present, _FLOATING_IP: floating_ip}
        return None

    def create(self, run: Run) -> Result:
        body = self._resolve(run)
        floating_ip = body.pop(_FLOATING_IP)
        created = run.client.request(NETWORK, "POST", _path(floating_ip), {_KEY: body}).json()[_KEY]
        observed = {**created, _FLOATING_IP: floating_ip}
        run.record_created(str(created["id"]), observed)
        return Done(observed)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        wanted, floating_ip = self._resolve(run), str(observed[_FLOATING_IP])
        changes = {
            name: value
            for name, value in wanted.items()
            if name != _FLOATING_IP and not is_same(value, observed.get(name))
        }
        if not changes:
            return Done(observed)
        answer = run.client.request(NETWORK, "PUT", f"{_path(floating_ip)}/{run.external_id}", {_KEY: changes})
        return Done({**observed, **answer.json()[_KEY]})

    def delete(self, run: Run) -> Result:
        present = self.read(run)
        if present is not None:
            run.client.request(NETWORK, "DELETE", f"{_path(str(present[_FLOATING_IP]))}/{run.external_id}")
        return Done(is_gone=True)

    def _resolve(self, run: Run) -> dict[str, Any]:
        body = resolve_references(run.names, body_of(run.specification))
        body[_PORT] = run.names.resolve("port", str(body[_PORT]))
        return body


def _path(floating_ip: str) -> str:
    return f"/floatingips/{floating_ip}/port_forwardings"
