"""Interfaces, gateways and extra routes of routers: resources of their own that change a router."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker_openstack.cloud.client import NETWORK
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run
from stoker_openstack.cloud.drivers.references import resolve_body
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.nouns import NOUNS, Noun
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


class RouterGatewayDriver(Driver):
    """The driver of gateways. The external id is ``<router id>:<network id>``, as in Heat."""

    kind, noun = CloudKind.ROUTER_GATEWAY, Noun("RouterGateway", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        router_id, _, network_id = run.external_id.partition(":")
        router = _ROUTER.find(run.client, router_id)
        gateway = (router or {}).get(_GATEWAY) or {}
        return _represent(router_id, gateway) if gateway.get("network_id") == network_id else None

    def create(self, run: Run) -> Result:
        body = resolve_body(run)
        router_id, network_id = body["router_id"], body["network_id"]
        router = _change_router(run, router_id, {"network_id": network_id})
        observed = _represent(router_id, router.get(_GATEWAY) or {})
        run.record_created(f"{router_id}:{network_id}", observed)
        return Done(observed)

    def delete(self, run: Run) -> Result:
        """Remove the gateway, unless the router has another one by now."""
        if self.read(run) is not None:
            _change_router(run, run.external_id.partition(":")[0], {})
        return Done(is_gone=True)


class ExtraRouteSetDriver(Driver):
    """
    The driver of sets of extra routes. The external id is the router's, as in Heat.

    ``observed`` lists the routes that this set may have added. The routes to add are stored before they are added, so
    that an interrupted action knows its own routes among those of the router.
    """

    kind, noun = CloudKind.EXTRA_ROUTE_SET, Noun("ExtraRouteSet", NETWORK)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        router = _ROUTER.find(run.client, run.external_id)
        if router is None:
            return None
        own = [route for route in _own_routes(run) if route in _plain(router["routes"])]
        return {"id": run.external_id, "routes": own}

    def create(self, run: Run) -> Result:
        router_id = run.names.resolve("router", str(run.specification["router_id"]))
        run.record_created(router_id, {"id": router_id, "routes": []})
        return self.update(run, run.object.observed)

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

    def delete(self, run: Run) -> Result:
        _change_routes(run, "remove", _own_routes(run))
        return Done(is_gone=True)

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


def _represent(router_id: str, gateway: Mapping[str, Any]) -> dict[str, Any]:
    return {"router_id": router_id, **gateway}


def _change_router(run: Run, router_id: str, gateway: Mapping[str, Any]) -> Mapping[str, Any]:
    body = {"router": {_GATEWAY: dict(gateway)}}
    router: Mapping[str, Any] = run.client.request(NETWORK, "PUT", f"/routers/{router_id}", body).json()["router"]
    return router


def _change_routes(run: Run, verb: str, routes: Sequence[Route]) -> None:
    """Add or remove routes; Neutron ignores those that are present, or missing, already."""
    if routes:
        body = {"router": {"routes": list(routes)}}
        run.client.request(NETWORK, "PUT", f"/routers/{run.external_id}/{verb}_extraroutes", body)


def _own_routes(run: Run) -> list[Route]:
    return _plain(run.object.observed.get("routes") or ())


def _plain(routes: Sequence[Mapping[str, Any]]) -> list[Route]:
    return [{"destination": route["destination"], "nexthop": route["nexthop"]} for route in routes]
