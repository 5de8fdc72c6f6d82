"""
Which objects an action on another object has changed: an attachment changes its server and its volume.

The objects that a resource shows are representations that Stoker stored. Code that changes a related object requests
that they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stoker.model.status import Status
from stoker.store.tx import Tx
from stoker_openstack.cloud.drivers.server import PORTS
from stoker_openstack.model import CloudAction, CloudKind, CloudObject
from stoker_openstack.store import cloud_objects

#: A kind of objects, and the id of one of them at the cloud.
Related = tuple[CloudKind, str | None]
_CHANGING = (CloudAction.ENSURE, CloudAction.DELETE)


def find_related(tx: Tx, before: CloudObject, after: CloudObject | None) -> set[tuple[CloudKind, str]]:
    """
    Return the objects with rows whose representations the action may have changed, besides the object itself.

    ``before`` and ``after`` are the object's rows before and after the action; None: the action deleted the object.
    """
    if before.action not in _CHANGING:
        return set()
    related: set[Related] = set()
    for observed in (before.observed, after.observed if after else {}):
        related.update(_RELATED[before.kind](before, observed) if before.kind in _RELATED else ())
    ports: set[str | None] = {id for kind, id in related if kind is CloudKind.PORT}
    if before.kind is CloudKind.PORT and before.external_id:
        ports.add(before.external_id)
    if after is None and before.kind in (CloudKind.PORT, CloudKind.SERVER):
        related.update(_floating_ips(tx, before.project_id, ports))
    if before.kind in (CloudKind.FLOATING_IP, CloudKind.FLOATING_IP_ASSOCIATION):
        related.update(_servers_of_ports(tx, before.project_id, ports))
        related = {item for item in related if item[0] is not CloudKind.PORT}  # Neutron shows no floating IP there
    return {(kind, id) for kind, id in related if id and _has_rows(tx, before.project_id, kind, id)}


def _has_rows(tx: Tx, project_id: str, kind: CloudKind, external_id: str) -> bool:
    rows = cloud_objects.of_external_id(tx, project_id, kind, external_id)
    return any(not is_deleting(row) for row in rows)


def is_deleting(row: CloudObject) -> bool:
    """Return whether the object is being deleted."""
    return row.action is CloudAction.DELETE and row.status is Status.IN_PROGRESS


def _floating_ips(tx: Tx, project_id: str, ports: set[str | None]) -> Iterator[Related]:
    """Yield the floating IPs that led to these ports."""
    for row in cloud_objects.of_kind(tx, project_id, CloudKind.FLOATING_IP):
        if row.observed.get("port_id") in ports:
            yield CloudKind.FLOATING_IP, row.external_id


def _servers_of_ports(tx: Tx, project_id: str, ports: set[str | None]) -> Iterator[Related]:
    """Yield the servers to which these ports are known to belong."""
    for id in ports:
        for row in cloud_objects.of_external_id(tx, project_id, CloudKind.PORT, id or ""):
            yield CloudKind.SERVER, row.observed.get("device_id")


def _attachment(_row: CloudObject, seen: Mapping[str, Any]) -> Iterator[Related]:
    yield CloudKind.SERVER, seen.get("serverId")
    yield CloudKind.VOLUME, seen.get("volumeId")


def _floating_ip(_row: CloudObject, seen: Mapping[str, Any]) -> Iterator[Related]:
    yield CloudKind.PORT, seen.get("port_id")
    yield CloudKind.SERVER, (seen.get("port_details") or {}).get("device_id")


def _association(row: CloudObject, seen: Mapping[str, Any]) -> Iterator[Related]:
    yield CloudKind.FLOATING_IP, seen.get("id")
    yield from _floating_ip(row, seen)


def _server(_row: CloudObject, seen: Mapping[str, Any]) -> Iterator[Related]:
    for port in seen.get(PORTS) or ():
        yield CloudKind.PORT, port
    for volume in seen.get("os-extended-volumes:volumes_attached") or ():
        yield CloudKind.VOLUME, volume.get("id")


def _router(row: CloudObject, _seen: Mapping[str, Any]) -> Iterator[Related]:
    yield CloudKind.ROUTER, (row.external_id or "").partition(":")[0]


def _member(kind: CloudKind, key: str) -> Callable[[CloudObject, Mapping[str, Any]], Iterator[Related]]:
    """Return a function that yields the object whose id a member of the representation has."""

    def related(_row: CloudObject, seen: Mapping[str, Any]) -> Iterator[Related]:
        yield kind, seen.get(key)

    return related


#: By the kind of the changed object: yields related objects, from one of its representations.
_RELATED: Mapping[CloudKind, Callable[[CloudObject, Mapping[str, Any]], Iterator[Related]]] = {
    CloudKind.VOLUME_ATTACHMENT: _attachment,
    CloudKind.FLOATING_IP: _floating_ip,
    CloudKind.FLOATING_IP_ASSOCIATION: _association,
    CloudKind.SERVER: _server,
    CloudKind.PORT: _member(CloudKind.SERVER, "device_id"),
    CloudKind.ROUTER_INTERFACE: _member(CloudKind.PORT, "port_id"),
    CloudKind.ROUTER_GATEWAY: _router,
    CloudKind.EXTRA_ROUTE_SET: _router,
    CloudKind.PORT_FORWARDING: _member(CloudKind.FLOATING_IP, "floatingip_id"),
    CloudKind.SECURITY_GROUP_RULE: _member(CloudKind.SECURITY_GROUP, "security_group_id"),
    CloudKind.SUBNET: _member(CloudKind.NETWORK, "network_id"),
}
