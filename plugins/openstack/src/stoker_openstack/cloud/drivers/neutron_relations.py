"""
Relations between objects of Neutron: interfaces, gateways and extra routes of routers, associations of floating IPs
with ports, and the forwarding of single ports of a floating IP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker_openstack.cloud.client import NETWORK, suppressing
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, differences, is_same
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.names import not_found
from stoker_openstack.cloud.nouns import NOUNS, Noun, forwardings_of
from stoker_openstack.model import CloudKind

_ROUTER = NOUNS["router"]
_GATEWAY = "external_gateway_info"
Route = Mapping[str, str]


class RouterInterfaceDriver(Driver):
    """
    The driver of router interfaces.

    The external id is ``<router id>:subnet_id=<id>`` or ``<router id>:port_id=<id>``, as in Heat.
    """

    kind, noun = CloudKind.ROUTER_INTERFACE, Noun("RouterInterface", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        return _interface(run, run.external_id)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        external_id = self._resolve(run)
        present = _interface(run, external_id)
        return {**present, "id": external_id} if present else None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        external_id = self._resolve(run)
        return external_id, self._send(run, "add", external_id).json()

    def delete(self, run: Run) -> None:
        self._send(run, "remove", run.external_id)

    def _resolve(self, run: Run) -> str:
        """Return the external id that follows from the specification."""
        body = run.login.resolve_body(run.specification)
        key = "port_id" if body.get("port_id") else "subnet_id"
        return f"{body['router_id']}:{key}={body[key]}"

    def _send(self, run: Run, verb: str, external_id: str) -> Any:
        router, key, id = _parts(external_id)
        return run.client.request(NETWORK, "PUT", f"/routers/{router}/{verb}_router_interface", {key: id})


def _parts(external_id: str) -> tuple[str, str, str]:
    router, _, relation = external_id.partition(":")
    key, _, id = relation.partition("=")
    return router, key, id


def _interface(run: Run, external_id: str) -> Mapping[str, Any] | None:
    """Return the interface of a router, in the form of the answer that created it."""
    router, key, id = _parts(external_id)
    query = [("device_id", router), ("id", id) if key == "port_id" else ("fixed_ips", f"subnet_id={id}")]
    ports = NOUNS["port"].list(run.client, query)
    if not ports:
        return None
    subnets = [address["subnet_id"] for address in ports[0]["fixed_ips"]]
    subnet_id = subnets[0] if subnets else None
    return {"id": router, "port_id": ports[0]["id"], "subnet_id": subnet_id, "subnet_ids": subnets}


class RouterGatewayDriver(Driver):
    """The driver of gateways. The external id is ``<router id>:<network id>``, as in Heat."""

    kind, noun = CloudKind.ROUTER_GATEWAY, Noun("RouterGateway", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        router_id, _, network_id = run.external_id.partition(":")
        router = _ROUTER.find(run.client, router_id)
        gateway = (router or {}).get(_GATEWAY) or {}
        return {"router_id": router_id, **gateway} if gateway.get("network_id") == network_id else None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        body = run.login.resolve_body(run.specification)
        router_id, network_id = body["router_id"], body["network_id"]
        router = _ROUTER.change(run.client, router_id, {_GATEWAY: {"network_id": network_id}})
        return f"{router_id}:{network_id}", {"router_id": router_id, **(router.get(_GATEWAY) or {})}

    def delete(self, run: Run) -> None:
        """Remove the gateway, unless the router has another one by now."""
        if self.read(run) is not None:
            _ROUTER.change(run.client, run.external_id.partition(":")[0], {_GATEWAY: {}})


class ExtraRouteSetDriver(Driver):
    """
    The driver of sets of extra routes. The external id is the router's, as in Heat.

    ``observed`` lists the routes that this set may have added. The routes to add are stored before they are added, so
    that an interrupted action knows its own routes among those of the router.
    """

    kind, noun = CloudKind.EXTRA_ROUTE_SET, Noun("ExtraRouteSet", NETWORK, "/routers")

    def read(self, run: Run) -> Mapping[str, Any] | None:
        router = _ROUTER.find(run.client, run.external_id)
        if router is None:
            return None
        own = [route for route in _own_routes(run) if route in _plain(router["routes"])]
        return {"id": run.external_id, "routes": own}

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        router_id = run.login.resolve("router", str(run.specification["router_id"]))
        return router_id, {"id": router_id, "routes": []}

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        own, wanted = _own_routes(run), _plain(run.specification.get("routes") or ())
        router = _ROUTER.find(run.client, run.external_id)
        present = _plain(router["routes"]) if router else []
        foreign = [route for route in wanted if route in present and route not in own]
        if foreign:
            route = foreign[0]
            name = f"{run.external_id},{route['destination']}={route['nexthop']}"
            raise CloudFailure(f"The physical resource for ({name}) exists.", "PhysicalResourceExists")
        _change_routes(run, "remove", [route for route in own if route not in wanted])
        added = [route for route in wanted if route not in present]
        if added:
            self._add(run, own, added)
        return Done({"id": run.external_id, "routes": wanted})

    def delete(self, run: Run) -> None:
        _change_routes(run, "remove", _own_routes(run))

    def _add(self, run: Run, own: Sequence[Route], added: Sequence[Route]) -> None:
        routes = [*own, *(route for route in added if route not in own)]
        run.record_created(run.external_id, {"id": run.external_id, "routes": routes})
        try:
            _change_routes(run, "add", added)
        except CloudRefused as error:
            if error.status < 500:  # Neutron has added none of them
                kept = [route for route in own if route not in added]
                run.record_created(run.external_id, {"id": run.external_id, "routes": kept})
            raise


def _change_routes(run: Run, verb: str, routes: Sequence[Route]) -> None:
    """Add or remove routes; Neutron ignores those that are present, or missing, already."""
    if routes:
        run.send("PUT", f"/{verb}_extraroutes", {"router": {"routes": list(routes)}})


def _own_routes(run: Run) -> list[Route]:
    return _plain(run.object.observed.get("routes") or ())


def _plain(routes: Sequence[Mapping[str, Any]]) -> list[Route]:
    return [{"destination": route["destination"], "nexthop": route["nexthop"]} for route in routes]


_FLOATING_IP = NOUNS["floating_ip"]
_ADDRESS = "floatingip_id"


class FloatingIpAssociationDriver(Driver):
    """The driver of associations. The external id is ``<floating ip id>:<port id>``, as in Heat."""

    kind, noun = CloudKind.FLOATING_IP_ASSOCIATION, Noun("FloatingIPAssociation", NETWORK)

    def adopt(self, run: Run) -> Result:
        # Heat gives associations ids of its own, so the id follows from the specification.
        body = run.login.resolve_body(run.specification)
        floating_ip, port = body[_ADDRESS], body["port_id"]
        observed = _FLOATING_IP.find(run.client, floating_ip)
        if observed is None or observed["port_id"] != port:
            raise not_found(self.noun.title, f"{floating_ip}:{port}")
        run.record_created(f"{floating_ip}:{port}", observed)
        return Done(observed)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        floating_ip = run.external_id.partition(":")[0]
        return _FLOATING_IP.find(run.client, floating_ip)

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        body = run.login.resolve_body(run.specification)
        floating_ip = body.pop(_ADDRESS)
        return f"{floating_ip}:{body.get('port_id') or ''}", _FLOATING_IP.change(run.client, floating_ip, body)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        body = run.login.resolve_body(run.specification)
        wanted, former = body.pop(_ADDRESS), run.external_id.partition(":")[0]
        if wanted == former and is_same(body, observed):
            return Done(observed)
        if wanted != former:
            _dissociate(run, former, observed)
        external_id, changed = self.request(run)
        run.record_created(external_id, changed)
        return Done(changed)

    def delete(self, run: Run) -> None:
        if observed := self.read(run):
            _dissociate(run, run.external_id.partition(":")[0], observed)


def _dissociate(run: Run, floating_ip: str, observed: Mapping[str, Any]) -> None:
    """Clear the port of a floating IP, unless another association has set it."""
    port = run.external_id.partition(":")[2]
    if observed.get("port_id") not in (None, "") and observed["port_id"] == (port or observed["port_id"]):
        with suppressing(404):
            _FLOATING_IP.change(run.client, floating_ip, {"port_id": None})


class PortForwardDriver(Driver):
    """The driver of port forwardings. ``observed`` also has the id of the floating IP."""

    kind, noun = CloudKind.PORT_FORWARDING, Noun("FloatingIPPortForward", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        floating_ip = str(run.object.observed.get(_ADDRESS) or run.login.resolve_body(run.specification)[_ADDRESS])
        present = forwardings_of(floating_ip).find(run.client, run.external_id)
        return {**present, _ADDRESS: floating_ip} if present else None

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        """Find the forwarding of the same external port, which a floating IP has once, to the same target."""
        wanted = run.login.resolve_body(run.specification)
        floating_ip = wanted.pop(_ADDRESS)
        query = {name: wanted[name] for name in ("external_port", "protocol")}
        for present in forwardings_of(floating_ip).list(run.client, query):
            if is_same(wanted, present):
                return {**present, _ADDRESS: floating_ip}
        return None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        body = run.login.resolve_body(run.specification)
        floating_ip = body.pop(_ADDRESS)
        observed = {**forwardings_of(floating_ip).create(run.client, body), _ADDRESS: floating_ip}
        return str(observed["id"]), observed

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        wanted, floating_ip = run.login.resolve_body(run.specification), str(observed[_ADDRESS])
        changes = differences({**wanted, _ADDRESS: floating_ip}, observed)
        if not changes:
            return Done(observed)
        return Done({**observed, **forwardings_of(floating_ip).change(run.client, run.external_id, changes)})

    def delete(self, run: Run) -> None:
        if present := self.read(run):
            forwardings_of(str(present[_ADDRESS])).delete(run.client, run.external_id)
