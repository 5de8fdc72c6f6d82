"""
Refreshes: representations of objects are read again after an action on another object has changed them.

The action's transaction defers a job for each list that may show a change, such as that of the servers after a floating
IP was associated. The job stores the representations of all objects of a project in this list. Without it, a template
would show the addresses that a server had before its floating IP.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from msgspec.structs import replace

from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.model.stack import Status
from stoker.store.tx import Tx
from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.context import CloudContext
from stoker_openstack.cloud.drivers.server import list_ports
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CloudAction, CloudKind, CloudObject
from stoker_openstack.store import cloud_objects

#: The kind of the jobs.
REFRESH = "cloud.refresh"
#: The kinds of objects that an action on an object of a kind may change, besides the object itself.
_CHANGED: Mapping[CloudKind, Collection[CloudKind]] = {
    CloudKind.VOLUME_ATTACHMENT: (CloudKind.SERVER, CloudKind.VOLUME),
    CloudKind.FLOATING_IP: (CloudKind.SERVER,),
    CloudKind.FLOATING_IP_ASSOCIATION: (CloudKind.SERVER, CloudKind.FLOATING_IP),
    CloudKind.SERVER: (CloudKind.PORT, CloudKind.VOLUME, CloudKind.FLOATING_IP),
    CloudKind.PORT: (CloudKind.SERVER, CloudKind.FLOATING_IP),
    CloudKind.ROUTER_INTERFACE: (CloudKind.PORT,),
    CloudKind.ROUTER_GATEWAY: (CloudKind.ROUTER,),
    CloudKind.EXTRA_ROUTE_SET: (CloudKind.ROUTER,),
    CloudKind.PORT_FORWARDING: (CloudKind.FLOATING_IP,),
    CloudKind.SECURITY_GROUP_RULE: (CloudKind.SECURITY_GROUP,),
    CloudKind.SUBNET: (CloudKind.NETWORK,),
}
#: When objects are read again. Neutron tells Nova of changed addresses some seconds later.
_SECONDS: Mapping[CloudKind, tuple[float, ...]] = {CloudKind.SERVER: (1.0, 8.0)}
_USUAL_SECONDS = (1.0,)
#: Seconds until an object is read again whose own action is in progress.
_BUSY = 5.0
_log = structlog.get_logger("stoker.backends")


class Refresher:
    """Defers and runs the jobs."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context
        context.work.register(REFRESH, self.refresh, threads=2)

    def request(self, tx: Tx, item: CloudObject) -> None:
        """Request refreshes after an action on an object."""
        if item.action not in (CloudAction.ENSURE, CloudAction.DELETE):
            return
        project_id = self._context.project_of(item)
        for kind in _CHANGED.get(item.kind, ()):
            if cloud_objects.any_existing(tx, kind, project_id):
                for seconds in _SECONDS.get(kind, _USUAL_SECONDS):
                    self._defer(tx, {"kind": kind.value, "project_id": project_id, "seconds": seconds}, seconds)

    def refresh(self, args: Mapping[str, Any]) -> None:
        """
        Job: store the representations of all objects of a list.

        An object whose own action is in progress, or begins meanwhile, keeps its representation for now.
        """
        kind = CloudKind(args["kind"])
        with self._context.store.read() as tx:
            rows = _rows(tx, kind, args["project_id"])
        try:
            root_ids = (row.root_id for row in rows)
            listed = self._context.read_first(root_ids, lambda client: _read(client, kind, rows), _log_refusal) or {}
        except (CloudRefused, RetryLater, ServiceUnavailable, ServiceRejected) as error:
            _log.info("cloud_refresh.failed", kind=kind.value, error=str(error))
            self._context.store.write(lambda tx: self._defer(tx, args, _BUSY))
            return
        current = [row for row in rows if str(row.external_id) in listed]
        if not all([self._store_row(row, listed[str(row.external_id)]) for row in current]):
            self._context.store.write(lambda tx: self._defer(tx, args, _BUSY))

    def _defer(self, tx: Tx, args: Mapping[str, Any], seconds: float) -> None:
        key = f"{args['kind']}:{args['seconds']}:{args['project_id'] or ''}"
        self._context.work.defer_by(tx, REFRESH, key, args, tx.now + timedelta(seconds=seconds))

    def _store_row(self, row: CloudObject, observed: Mapping[str, Any]) -> bool:
        """Store the representation of one object; return False if an action on the object is in progress."""
        if row.status is Status.IN_PROGRESS:
            return False
        merged = self._context.registry.represent(row.kind, {**row.observed, **observed})
        if merged == row.observed:
            return True

        def do(tx: Tx) -> bool:
            current = cloud_objects.find(tx, row.id, for_update=True)
            if current is not None and current.desired_generation != row.desired_generation:
                return False
            if current is not None:
                cloud_objects.save(tx, replace(current, observed=merged))
            return True

        return self._context.store.write(do)


def _log_refusal(root_id: str, error: CloudFailure) -> None:
    _log.info("cloud_refresh.refused", root_id=root_id, error=str(error))


def _read(client: CloudClient, kind: CloudKind, rows: Sequence[CloudObject]) -> dict[str, dict[str, Any]]:
    """List the objects by id, of servers only those of ``rows``, with their ports."""
    listed = {str(item["id"]): item for item in NOUNS[kind].list(client)}
    if kind is not CloudKind.SERVER:
        return listed
    ports = list_ports(client, [row.external_id for row in rows if row.external_id in listed])
    return {id: {**listed[id], **own} for id, own in ports.items()}


def _rows(tx: Tx, kind: CloudKind, project_id: str | None) -> list[CloudObject]:
    """Return the objects of a kind that the cloud has and that stay, of one project or of all (None)."""
    rows = cloud_objects.existing(tx, kind, project_id)
    return [row for row in rows if not (row.action is CloudAction.DELETE and row.status is Status.IN_PROGRESS)]
