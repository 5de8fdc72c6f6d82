"""
Polling of the states of objects while a cloud changes them: one list call for all objects of a project and a kind.

One job per project makes at most one list call a second. While objects of several kinds change, their lists alternate.
The pauses grow with the time since the last request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from msgspec.structs import replace

from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.store.tx import Tx
from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.context import POLL, CloudContext
from stoker_openstack.cloud.drivers.base import Done, Judgement
from stoker_openstack.cloud.drivers.server import list_ports
from stoker_openstack.cloud.errors import CloudFailure, RetryLater
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.cloud.recorder import AWAITS_CLOUD, Recorder
from stoker_openstack.model import CloudKind, CloudObject
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
        for item in some:
            if item.reason.startswith(AWAITS_CLOUD):
                self._recorder.explain(item, "The cloud answers again")
        completed: list[tuple[CloudObject, Done]] = []
        for item in some:
            observed = by_id.get(str(item.progress.get("polled_id") or item.external_id))
            judgement = self._judge(item, observed)
            if judgement.is_due:
                self._recorder.request_driver(item)
            elif isinstance(judgement.result, Done):
                completed.append((item, judgement.result))
        self._complete(client, completed)

    def _judge(self, item: CloudObject, observed: Mapping[str, Any] | None) -> Judgement:
        try:
            return self._context.registry.drivers[item.kind].judge(item, observed, self._context.store.clock.now())
        except CloudFailure as error:
            self._recorder.fail(item, error)
            return Judgement()

    def _complete(self, client: CloudClient, completed: Sequence[tuple[CloudObject, Done]]) -> None:
        """Complete actions. The ports of all servers that started are listed together."""
        servers = [str(item.external_id) for item, _ in completed if item.kind is CloudKind.SERVER]
        ports = list_ports(client, servers)
        for item, done in completed:
            own = ports.get(str(item.external_id), {}) if item.kind is CloudKind.SERVER else {}
            self._recorder.complete(item, replace(done, observed={**done.observed, **own}) if done.observed else done)
