"""/v1/{project}/software_triggers/{id}/events: a stream of the events of a trigger's servers (Stoker's own)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from stoker.http import event_stream
from stoker.http.contracts import operation
from stoker.http.event_stream import Batch, Event
from stoker.http.fields import fill
from stoker.http.heat.logs import OutputChunk
from stoker.http.heat.triggers import SoftwareTrigger, TriggerTarget, serialize, serialize_target
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


@operation(200, str, media_type="text/event-stream")
async def follow(request: RequestContext) -> Response:
    """
    Stream the events of a trigger until it ends.

    Server-sent events: target, log and trigger as they occur, and end when no more events can follow.
    """
    feed = _TriggerFeed(request, event_stream.last_id(request))
    return await event_stream.reply(request, feed.topics, feed.read)


class _TriggerFeed:
    """The position of one event stream."""

    def __init__(self, request: RequestContext, after: int) -> None:
        self._request = request
        self._id = request.path["trigger_id"]
        self._sent = _SentLogs(after)
        self._trigger: SoftwareTrigger | None = None
        self._targets: dict[int, Target] = {}
        self._shown: dict[int, TriggerTarget] = {}

    def topics(self) -> Collection[str]:
        running = (t.deployment_id for t in self._targets.values() if t.status == TargetStatus.IN_PROGRESS)
        return (trigger_topic(self._id), *(deployment_topic(id) for id in running if id))

    def read(self) -> Batch:
        """
        Return the next events.

        ``target``, ``log`` and ``trigger`` events as they occur, and ``end`` when no more events can follow.
        """
        with self._request.app.store.read() as tx:
            trigger = serialize(tx, triggers.get(tx, self._id, self._request.project))
            events = self._read_changes(tx)
            named = {target.deployment_id: target for target in self._targets.values() if target.deployment_id}
            chunks, more = logs.page_of_each(tx, self._sent.after(named))
            now = tx.now
        ended = trigger.status != TriggerStatus.IN_PROGRESS
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
        states = targets.states(tx, self._id)
        candidates = [
            target
            for target in states
            if target.status == TargetStatus.IN_PROGRESS or target != self._targets.get(target.position)
        ]
        current = runs.newest(tx, [target.deployment_id for target in candidates if target.deployment_id])
        self._targets = {target.position: target for target in states}
        events = []
        for target in candidates:
            shown = serialize_target(tx, target, current.get(target.deployment_id or ""), tx.now)
            lasting = _without_durations(shown)
            if lasting != self._shown.get(target.position):
                self._shown[target.position] = lasting
                events.append(Event("target", shown))
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


def _without_durations(target: TriggerTarget) -> TriggerTarget:
    """Return the target without durations. The state UNRESPONSIVE is an event, but its growing duration is not."""

    return target if target.run is None else replace(target, run=replace(target.run, unresponsive_seconds=None))
