"""/v1/{project}/software_triggers/{id}/events: a stream of the events of a trigger's servers (Stoker's own)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from stoker.http import event_stream
from stoker.http.event_stream import Batch, Event
from stoker.http.fields import fill
from stoker.http.heat import triggers as shapes
from stoker.http.heat.logs import OutputChunk
from stoker.http.request_context import RequestContext, Response
from stoker.model.deployment import LogChunk
from stoker.model.trigger import Target, TargetStatus, TriggerStatus
from stoker.store import logs, runs, targets, triggers
from stoker.store.notifier import deployment_topic, trigger_topic
from stoker.store.tx import Tx

#: After this time, all transactions that were open when a chunk was created have ended.
_SETTLED = timedelta(seconds=10)
_ALL = datetime.max.replace(tzinfo=UTC)


class TriggerOutput(OutputChunk):
    """A chunk of output with its server."""

    server_id: str
    server_name: str


async def follow(request: RequestContext) -> Response:
    """Stream the events of the trigger and its targets until the trigger ends."""
    following = _TriggerFeed(request, event_stream.last_id(request))
    return await event_stream.reply(request, following.topics, following.read)


class _TriggerFeed:
    """The position of one event stream."""

    def __init__(self, request: RequestContext, after: int) -> None:
        self._request = request
        self._id = request.path["trigger_id"]
        self._sent = _SentLogs(after)
        self._trigger: dict[str, Any] | None = None
        self._targets: dict[int, Target] = {}
        self._serialize: dict[int, dict[str, Any]] = {}

    def topics(self) -> Collection[str]:
        running = (each.deployment_id for each in self._targets.values() if each.status == TargetStatus.IN_PROGRESS)
        return (trigger_topic(self._id), *(deployment_topic(id) for id in running if id))

    def read(self) -> Batch:
        """
        Return the next events.

        ``target``, ``log`` and ``trigger`` events as they occur, and ``end`` when no more events can follow.
        """
        with self._request.app.store.read() as tx:
            trigger = shapes.serialize(tx, triggers.get(tx, self._id, self._request.project))
            events = self._read_changes(tx)
            named = {each.deployment_id: each for each in self._targets.values() if each.deployment_id}
            chunks, more = logs.page_of_each(tx, self._sent.after(named))
            now = tx.now
        ended = trigger["status"] != TriggerStatus.IN_PROGRESS
        # Ending a deployment and appending to its log both lock the deployment. A reader that sees the end sees all
        # output before it.
        settled = _ALL if ended else now - _SETTLED
        for deployment_id, chunk in chunks:
            target = named[deployment_id]
            output = fill(TriggerOutput, chunk, server_id=target.server_id, server_name=target.server_name)
            events.append(Event("log", output, self._sent.add(deployment_id, chunk, settled)))
        if trigger != self._trigger:
            events.append(Event("trigger", trigger))
            self._trigger = trigger
        over = ended and not more
        return Batch([*events, Event("end", trigger)] if over else events, over, more)

    def _read_changes(self, tx: Tx) -> list[Event]:
        """Return ``target`` events. Reads the runs of targets only if they are in progress or have changed."""
        found = targets.states(tx, self._id)
        looked_at = [
            each
            for each in found
            if each.status == TargetStatus.IN_PROGRESS or each != self._targets.get(each.position)
        ]
        current = runs.newest(tx, [each.deployment_id for each in looked_at if each.deployment_id])
        self._targets = {each.position: each for each in found}
        events = []
        for each in looked_at:
            said = shapes.target(tx, each, current.get(each.deployment_id or ""), tx.now)
            lasting = _without_durations(said)
            if lasting != self._serialize.get(each.position):
                self._serialize[each.position] = lasting
                events.append(Event("target", said))
        return events


class _SentLogs:
    """
    The output of each deployment that the stream has already sent.

    Chunks of several deployments do not become visible in the order of their numbers. The id of an event is all that a
    reconnecting client sends. The id is therefore not the number of the event's chunk, but a lower bound for the
    numbers of all new chunks. After a reconnect, the last seconds may be sent twice, but nothing is missing.
    """

    def __init__(self, after: int) -> None:
        self._begin = self._floor = self._greatest = after
        self._of: dict[str, int] = {}
        #: When a chunk was created, and the greatest number sent until then, to which the lower bound will rise.
        self._rising: deque[tuple[datetime, int]] = deque()

    def after(self, deployment_ids: Collection[str]) -> dict[str, int]:
        """Return the last number that was sent of each deployment."""
        return {id: self._of.get(id, self._begin) for id in deployment_ids}

    def add(self, deployment_id: str, chunk: LogChunk, settled: datetime) -> int:
        """Return the id of the chunk's event. ``settled``: no new chunk can have an earlier time."""
        self._of[deployment_id] = chunk.seq
        self._greatest = max(self._greatest, chunk.seq)
        self._rising.append((chunk.at, self._greatest))
        while self._rising and self._rising[0][0] <= settled:
            self._floor = self._rising.popleft()[1]
        return self._floor


def _without_durations(target: dict[str, Any]) -> dict[str, Any]:
    """Return the target without durations. The state UNRESPONSIVE is an event, but its growing duration is not."""
    run = target["run"]
    return target if run is None else {**target, "run": replace(run, unresponsive_seconds=None)}
