"""
Reading of a cloud's lists, each of which has all objects of a project and a kind.

Polling reads the states of objects while the cloud changes them. One job per project makes at most one list call a
second. While objects of several kinds change, their lists alternate. The pauses grow with the time since the last
request.

Refreshes read the representations of objects again after an action on another object has changed them. The action's
transaction defers a job for each list that may show a change, such as that of the servers after a floating IP was
associated. The job stores the representations of all objects of a project in this list. Without it, a template would
show the addresses that a server had before its floating IP.
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
from stoker_openstack.cloud.context import POLL, CloudContext
from stoker_openstack.cloud.drivers.base import STILL_WAITING, Done, Result
from stoker_openstack.cloud.drivers.server import list_ports
from stoker_openstack.cloud.drivers.server_changes import FLOATING_IPS
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.cloud.recorder import AWAITS_CLOUD, Recorder
from stoker_openstack.model import CloudAction, CloudKind, CloudObject
from stoker_openstack.store import cloud_objects

_SHORTEST, _LONGEST, _GROWTH = 1.0, 10.0, 0.1
#: Seconds until the next attempt while a service does not answer.
_AWAY = 3.0
_log = structlog.get_logger("stoker.backends")


#: The lists in which objects are polled, by ``Wait.source``.
SOURCES: Mapping[str, Noun] = {noun.key: noun for noun in NOUNS.values()}


class StatePoller:
    """The job that polls."""

    def __init__(self, context: CloudContext, recorder: Recorder) -> None:
        self._context = context
        self._recorder = recorder

    def poll(self, args: Mapping[str, Any]) -> None:
        """Job: make one list call for a project, and defer the next one."""
        project_id, polled = args.get("project_id"), dict(args.get("polled") or {})
        with self._context.store.read() as tx:
            waiting = cloud_objects.awaiting(tx, project_id)
        if not waiting:
            return
        name = min((str(item.awaits) for item in waiting), key=lambda source: (polled.get(source, ""), source))
        some = [item for item in waiting if item.awaits == name]
        pause = _SHORTEST
        try:
            self._poll(SOURCES[name], some)
        except (ServiceUnavailable, ServiceRejected, CloudFailure) as error:
            _log.warning("cloud_poll.failed", project_id=project_id, source=name, error=str(error))
            for item in some:
                self._recorder.interrupt(item, error)
            pause = _AWAY
        except RetryLater as error:
            pause = max(pause, error.seconds)
        self._go_on(project_id, {**polled, name: self._context.store.clock.now().isoformat()}, pause)

    def _go_on(self, project_id: str | None, polled: Mapping[str, str], pause: float) -> None:
        """Defer the next list call, unless no object waits."""

        def do(tx: Tx) -> None:
            left = cloud_objects.awaiting(tx, project_id)
            if left:
                latest = max(item.awaited_since or tx.now for item in left)
                grown = min(_LONGEST, (tx.now - latest).total_seconds() * _GROWTH)
                args = {"project_id": project_id, "polled": polled}
                at = tx.now + timedelta(seconds=max(pause, grown))
                self._context.work.defer_once(tx, POLL, project_id or "site", args, at=at)

        self._context.store.write(do)

    def _poll(self, source: Noun, some: Sequence[CloudObject]) -> None:
        """List the objects of a source, and act on the states of those that wait; fail those without a valid login."""

        def fail(root_id: str, error: CloudFailure) -> None:
            for item in some:
                if item.root_id == root_id:
                    self._recorder.fail(item, error)

        root_ids = (item.root_id for item in some)
        listing = self._context.read_first(root_ids, lambda client: (client, source.list(client)), fail)
        if listing is None:
            return
        client, listed = listing
        by_id = {str(item["id"]): item for item in listed}
        completed: list[tuple[CloudObject, Done]] = []
        for item in some:
            if item.reason.startswith(AWAITS_CLOUD):
                self._recorder.explain(item, "The cloud answers again")
            result = self._judge(item, by_id.get(str(item.progress.get("polled_id") or item.external_id)))
            if result is None:
                self._recorder.request_driver(item)
            elif isinstance(result, Done):
                completed.append((item, result))
        self._complete(client, completed)

    def _judge(self, item: CloudObject, observed: Mapping[str, Any] | None) -> Result | None:
        try:
            return self._context.drivers[item.kind].judge(item, observed, self._context.store.clock.now())
        except CloudFailure as error:
            self._recorder.fail(item, error)
            return STILL_WAITING

    def _complete(self, client: CloudClient, completed: Sequence[tuple[CloudObject, Done]]) -> None:
        """Complete actions. The ports of all servers that started are listed together."""
        servers = [str(item.external_id) for item, _ in completed if item.kind is CloudKind.SERVER]
        ports = list_ports(client, servers)
        for item, done in completed:
            own = ports.get(str(item.external_id), {}) if item.kind is CloudKind.SERVER else {}
            self._recorder.complete(item, replace(done, observed={**done.observed, **own}) if done.observed else done)


#: The kind of the jobs that refresh.
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


class Refresher:
    """Defers and runs the jobs that refresh."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context
        context.work.register(REFRESH, self.refresh, threads=2)

    def request(self, tx: Tx, item: CloudObject) -> None:
        """Request refreshes after an action on an object."""
        if item.action not in (CloudAction.ENSURE, CloudAction.DELETE):
            return
        project_id = self._context.project_of(item)
        kinds = _CHANGED.get(item.kind, ())
        if FLOATING_IPS in item.observed:  # which Nova shows some seconds later
            kinds = (*kinds, CloudKind.SERVER)
        for kind in kinds:
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
            rows = cloud_objects.existing(tx, kind, args["project_id"])
        try:
            root_ids = (row.root_id for row in rows)
            listed = self._context.read_first(root_ids, lambda client: _list(client, kind, rows), _log_refusal) or {}
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
        merged = self._context.represent(row.kind, {**row.observed, **observed})
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


def _list(client: CloudClient, kind: CloudKind, rows: Sequence[CloudObject]) -> dict[str, dict[str, Any]]:
    """List the objects by id, of servers only those of ``rows``, with their ports."""
    listed = {str(item["id"]): item for item in NOUNS[kind].list(client)}
    if kind is not CloudKind.SERVER:
        return listed
    ports = list_ports(client, [row.external_id for row in rows if row.external_id in listed])
    return {id: {**listed[id], **own} for id, own in ports.items()}
