"""
Polling of the states of objects while a cloud changes them: one list call for all objects of a project and a kind.

One job per project makes at most one list call a second. While objects of several kinds change, their lists alternate.
The pauses grow with the time since the last request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from stoker.backends.cloud.client import COMPUTE, IMAGE, NETWORK, VOLUME, CloudClient
from stoker.backends.cloud.controller import AWAITS_CLOUD, POLL, CloudContext, Recorder
from stoker.backends.cloud.drivers.base import SENT_AT, Done, Judgement
from stoker.backends.cloud.drivers.server import PORTS, summarize_port
from stoker.backends.cloud.drivers.server_request import MICROVERSION
from stoker.backends.cloud.errors import CloudFailure, RetryLater
from stoker.backends.cloud.markers import marker_of
from stoker.circuit_breaker import ServiceRejected, ServiceUnavailable
from stoker.model.cloud import CloudKind, CloudObject
from stoker.store import cloud_objects

#: Seconds between two list calls of a project: the shortest and longest pause, and the part of the time since the last
#: request.
_SHORTEST, _LONGEST, _GROWTH = 1.0, 10.0, 0.1
#: Seconds until the next attempt while a service does not answer.
_AWAY = 3.0
#: Limit of the servers whose ports one call lists: the ids are in the URL.
_SERVERS_IN_QUERY = 100
_log = structlog.get_logger("stoker.backends")


@dataclass(frozen=True, slots=True)
class Source:
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
}


class StatePoller:
    """The job that polls."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context
        self._recorder = Recorder(context)

    def poll(self, args: Mapping[str, Any]) -> None:
        """Job: make one list call for a project, and defer the next one."""
        scope, polled = args["scope"], dict(args.get("polled") or {})
        waiting = self._awaiting(scope)
        if not waiting:
            return
        name = min({str(item.awaits) for item in waiting}, key=lambda source: (polled.get(source, ""), source))
        some = [item for item in waiting if item.awaits == name]
        calls, pause = 1, 0.0
        try:
            calls += self._poll(SOURCES[name], some)
        except (ServiceUnavailable, ServiceRejected) as error:
            _log.warning("cloud_poll.failed", scope=scope, source=name, error=str(error))
            for item in some:
                self._recorder.explain(item, f"{AWAITS_CLOUD}{error}")
            pause = _AWAY
        except RetryLater as error:
            pause = error.seconds
        self._go_on(scope, {**polled, name: self._now().isoformat()}, max(pause, calls * _SHORTEST))

    def _awaiting(self, scope: str) -> list[CloudObject]:
        with self._context.store.read() as tx:
            return cloud_objects.awaiting(tx, None if self._context.credentials.is_shared else scope)

    def _now(self) -> datetime:
        with self._context.store.read() as tx:
            return tx.now

    def _go_on(self, scope: str, polled: Mapping[str, str], pause: float) -> None:
        """Defer the next list call, unless no object waits."""

        def do(tx: Any) -> None:
            shared = self._context.credentials.is_shared
            left = cloud_objects.awaiting(tx, None if shared else scope)
            if not left:
                return
            latest = max(item.awaited_since or tx.now for item in left)
            age = (tx.now - latest).total_seconds()
            seconds = max(pause, min(_LONGEST, max(_SHORTEST, age * _GROWTH)))
            args = {"scope": scope, "polled": dict(polled)}
            self._context.work.defer_once(tx, POLL, scope, args, at=tx.now + timedelta(seconds=seconds))

        self._context.store.write(do)

    def _poll(self, source: Source, some: Sequence[CloudObject]) -> int:
        """List the objects of a source, and act on their states. Return the number of further list calls."""
        listing = self._list(source, some)
        if listing is None:
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
        return self._complete(client, completed)

    def _explain_recovery(self, some: Sequence[CloudObject]) -> None:
        for item in some:
            if item.reason.startswith(AWAITS_CLOUD):
                self._recorder.explain(item, "The cloud answers again")

    def _list(self, source: Source, some: Sequence[CloudObject]) -> tuple[CloudClient, list[dict[str, Any]]] | None:
        """List the objects with the first valid login; objects without valid credentials fail."""
        refused: set[str] = set()
        for item in some:
            if item.root_id in refused:
                continue
            try:
                client = self._context.credentials.open(item).client
                return client, client.list(source.service, source.path, source.key, microversion=source.microversion)
            except CloudFailure as error:
                refused.add(item.root_id)
                for other in some:
                    if other.root_id == item.root_id:
                        self._recorder.fail(other, error)
        return None

    def _judge(self, item: CloudObject, observed: Mapping[str, Any] | None) -> Judgement:
        try:
            return self._context.registry.drivers[item.kind].judge(item, observed)
        except CloudFailure as error:
            self._recorder.fail(item, error)
            return Judgement()

    def _complete(self, client: CloudClient, completed: Sequence[tuple[CloudObject, Done]]) -> int:
        """Complete actions. The ports of all servers that started are listed together."""
        servers = [str(item.external_id) for item, _ in completed if item.kind is CloudKind.SERVER]
        ports: dict[str, dict[str, Any]] = {id: {} for id in servers}
        calls = 0
        for start in range(0, len(servers), _SERVERS_IN_QUERY):
            query = [("device_id", id) for id in servers[start : start + _SERVERS_IN_QUERY]]
            calls += 1
            for port in client.list(NETWORK, "/ports", "ports", query=query):
                ports.setdefault(port["device_id"], {})[port["id"]] = summarize_port(port)
        for item, done in completed:
            if item.kind is CloudKind.SERVER:
                own = {PORTS: ports[str(item.external_id)]}
                self._recorder.complete(item, replace(done, observed={**(done.observed or {}), **own}))
            else:
                self._recorder.complete(item, done)
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
