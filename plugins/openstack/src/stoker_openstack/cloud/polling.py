"""
Polling of the states of objects while a cloud changes them: one list call for all objects of a project and a kind.

One job per project makes at most one list call a second. While objects of several kinds change, their lists alternate.
The pauses grow with the time since the last request. The list calls also serve the refreshes of other objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import replace

from stoker.circuit_breaker import ServiceRejected, ServiceUnavailable
from stoker_openstack.cloud.client import COMPUTE, IMAGE, NETWORK, VOLUME, CloudClient
from stoker_openstack.cloud.controller import INTERNAL_ERROR
from stoker_openstack.cloud.drivers.base import SENT_AT, Done, Judgement
from stoker_openstack.cloud.drivers.server import PORTS, summarize_port
from stoker_openstack.cloud.drivers.server_request import MICROVERSION
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.markers import marker_of
from stoker_openstack.cloud.recorder import AWAITS_CLOUD, POLL, CloudContext, Recorder
from stoker_openstack.cloud.refresh import Batch, Refresher
from stoker_openstack.model import CloudKind, CloudObject
from stoker_openstack.store import cloud_objects

#: Seconds between two list calls of a project: the shortest and longest pause, and the part of the time since the last
#: request.
_SHORTEST, _LONGEST, _GROWTH = 1.0, 10.0, 0.1
#: Seconds until the next attempt while a service does not answer.
_AWAY = 3.0
#: Limit of the servers whose ports one call lists: the ids are in the URL.
_SERVERS_IN_QUERY = 100
_log = structlog.get_logger("stoker.backends")


class Source(Struct, frozen=True):
    """A list of a cloud."""

    service: str
    path: str
    key: str
    microversion: str | None = None


SOURCES: Mapping[str, Source] = {
    "servers": Source(COMPUTE, "/servers/detail", "servers", MICROVERSION),
    "volumes": Source(VOLUME, "/volumes/detail", "volumes"),
    "backups": Source(VOLUME, "/backups/detail", "backups"),
    "images": Source(IMAGE, "/images", "images"),
    "networks": Source(NETWORK, "/networks", "networks"),
    "subnets": Source(NETWORK, "/subnets", "subnets"),
    "ports": Source(NETWORK, "/ports", "ports"),
    "routers": Source(NETWORK, "/routers", "routers"),
    "floatingips": Source(NETWORK, "/floatingips", "floatingips"),
    "security_groups": Source(NETWORK, "/security-groups", "security_groups"),
}


class StatePoller:
    """The job that polls."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context
        self._recorder = Recorder(context)
        self._refresher = Refresher(context.store, context.registry)

    def poll(self, args: Mapping[str, Any]) -> None:
        """Job: make one list call for a project, and defer the next one."""
        scope, polled = args["scope"], dict(args.get("polled") or {})
        waiting, due = self._awaiting(scope), self._refresher.find_due(self._project(scope))
        names = {str(item.awaits) for item in waiting} | set(due)
        if not names:
            self._go_on(scope, polled, 0.0)
            return
        name = min(names, key=lambda source: (polled.get(source, ""), source))
        some = [item for item in waiting if item.awaits == name]
        calls, pause = 1, 0.0
        try:
            calls += self._poll(SOURCES[name], some, due.get(name, Batch()))
        except (ServiceUnavailable, ServiceRejected, CloudFailure) as error:
            _log.warning("cloud_poll.failed", scope=scope, source=name, error=str(error))
            for item in some:
                self._recorder.interrupt(item, error)
            pause = _AWAY
        except RetryLater as error:
            pause = error.seconds
        self._go_on(scope, {**polled, name: self._context.store.clock.now().isoformat()}, max(pause, calls * _SHORTEST))

    def _awaiting(self, scope: str) -> list[CloudObject]:
        with self._context.store.read() as tx:
            return cloud_objects.awaiting(tx, self._project(scope))

    def _project(self, scope: str) -> str | None:
        return None if self._context.credentials.is_shared else scope

    def _go_on(self, scope: str, polled: Mapping[str, str], pause: float) -> None:
        """Defer the next list call, unless no object waits or has to be read again."""

        def do(tx: Any) -> None:
            left = cloud_objects.awaiting(tx, self._project(scope))
            pauses = []
            if left:
                latest = max(item.awaited_since or tx.now for item in left)
                pauses.append(min(_LONGEST, (tx.now - latest).total_seconds() * _GROWTH))
            if refresh_at := self._refresher.next_due(tx, self._project(scope)):
                pauses.append((refresh_at - tx.now).total_seconds())
            if pauses:
                args = {"scope": scope, "polled": dict(polled)}
                at = tx.now + timedelta(seconds=max(pause, _SHORTEST, min(pauses)))
                self._context.work.defer_once(tx, POLL, scope, args, at=at)

        self._context.store.write(do)

    def _poll(self, source: Source, some: Sequence[CloudObject], batch: Batch) -> int:
        """
        List the objects of a source, act on the states of those that wait, and store those of the refreshes.

        Return the number of further list calls.
        """
        query = [("id", id) for id in batch.external_ids] if source.service == NETWORK and not some else []
        listing = self._list(source, [*some, *batch.rows.values()], query)
        if listing is None:
            self._refresher.drop(batch)
            return 0
        client, listed = listing
        by_id = {str(item["id"]): item for item in listed}
        self._explain_recovery(some)
        completed: list[tuple[CloudObject, Done]] = []
        for item in some:
            observed = by_id.get(str(item.progress.get("polled_id") or item.external_id))
            judgement = self._judge(item, observed)
            if judgement.is_due:
                self._recorder.request_driver(item)
            elif isinstance(judgement.result, Done):
                completed.append((item, judgement.result))
        self._delete_duplicates(client, source, some, listed)
        return self._complete(client, completed) + self._refresh(client, batch, by_id)

    def _refresh(self, client: CloudClient, batch: Batch, listed: Mapping[str, Mapping[str, Any]]) -> int:
        """Store listed objects of refreshes, servers with their ports. Return the number of further list calls."""
        servers = [row for row in batch.rows.values() if row.kind is CloudKind.SERVER]
        ports, calls = _list_ports(client, [str(row.external_id) for row in servers])
        self._refresher.store(batch, {id: {**item, **ports.get(id, {})} for id, item in listed.items()})
        return calls

    def _explain_recovery(self, some: Sequence[CloudObject]) -> None:
        for item in some:
            if item.reason.startswith(AWAITS_CLOUD):
                self._recorder.explain(item, "The cloud answers again")

    def _list(
        self, source: Source, some: Sequence[CloudObject], query: Sequence[tuple[str, str]]
    ) -> tuple[CloudClient, list[dict[str, Any]]] | None:
        """
        List the objects with the first valid login; objects without valid credentials fail.

        Raises CloudRefused for an internal error of the service.
        """
        refused: set[str] = set()
        for item in some:
            if item.root_id in refused:
                continue
            try:
                client = self._context.credentials.open(item.root_id).client
                version = source.microversion
                return client, client.list(source.service, source.path, source.key, query=query, microversion=version)
            except CloudFailure as error:
                if isinstance(error, CloudRefused) and error.status >= INTERNAL_ERROR:
                    raise
                refused.add(item.root_id)
                for other in some:
                    if other.root_id == item.root_id:
                        self._recorder.fail(other, error)
        return None

    def _judge(self, item: CloudObject, observed: Mapping[str, Any] | None) -> Judgement:
        try:
            return self._context.registry.drivers[item.kind].judge(item, observed, self._context.store.clock.now())
        except CloudFailure as error:
            self._recorder.fail(item, error)
            return Judgement()

    def _complete(self, client: CloudClient, completed: Sequence[tuple[CloudObject, Done]]) -> int:
        """Complete actions. The ports of all servers that started are listed together."""
        servers = [str(item.external_id) for item, _ in completed if item.kind is CloudKind.SERVER]
        ports, calls = _list_ports(client, servers)
        for item, done in completed:
            own = ports.get(str(item.external_id), {}) if item.kind is CloudKind.SERVER else {}
            self._recorder.complete(item, replace(done, observed={**done.observed, **own}) if done.observed else done)
        return calls

    def _delete_duplicates(
        self, client: CloudClient, source: Source, some: Sequence[CloudObject], listed: Sequence[Mapping[str, Any]]
    ) -> None:
        """
        Delete objects that a request created whose answer was lost, if another request was sent for their resource.
        """
        items = {item.id: item for item in some if item.external_id}
        for observed in listed:
            marker = marker_of(observed)
            if marker is None or marker.site != self._context.site or marker.resource_id not in items:
                continue
            item = items[marker.resource_id]
            if source.key in ("servers", "volumes") and observed["id"] != item.external_id and self._is_unchanged(item):
                _log.warning("cloud_object.duplicate", object_id=marker.resource_id, external_id=observed["id"])
                path = f"{source.path.removesuffix('/detail')}/{observed['id']}"
                try:
                    client.request(source.service, "DELETE", path)
                except CloudFailure as error:
                    _log.warning("cloud_object.duplicate_kept", external_id=observed["id"], error=str(error))

    def _is_unchanged(self, item: CloudObject) -> bool:
        """Return whether no job has sent another create request since the objects were listed."""
        with self._context.store.read() as tx:
            row = cloud_objects.find(tx, item.id)
        return row is not None and row.external_id == item.external_id and SENT_AT not in row.progress


def _list_ports(client: CloudClient, servers: Sequence[str]) -> tuple[dict[str, dict[str, Any]], int]:
    """Return Stoker's own key of the representation of each server, with its ports, and the number of list calls."""
    ports: dict[str, dict[str, Any]] = {id: {PORTS: {}} for id in servers}
    starts = range(0, len(servers), _SERVERS_IN_QUERY)
    for start in starts:
        query = [("device_id", id) for id in servers[start : start + _SERVERS_IN_QUERY]]
        for port in client.list(NETWORK, "/ports", "ports", query=query):
            if port["device_id"] in ports:
                ports[port["device_id"]][PORTS][port["id"]] = summarize_port(port)
    return ports, len(starts)
