"""/v1/{project}/software_triggers/{id}/events: all that happens on the servers of a trigger (Stoker's own)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from stoker.http import event_stream
from stoker.http.call import Call, Reply
from stoker.http.event_stream import Batch, Event
from stoker.http.heat import triggers as shapes
from stoker.http.heat.logs import chunk_shown
from stoker.model.deployment import LogChunk
from stoker.model.trigger import Target, TargetStatus, TriggerStatus
from stoker.store import logs, runs, targets, triggers
from stoker.store.bell import deployment_topic, trigger_topic
from stoker.store.tx import Tx

_PAGE = 200
#: Whoever was writing when a chunk was begun has written after so long.
_SETTLED = timedelta(seconds=10)
_ALL = datetime.max.replace(tzinfo=UTC)


async def follow(call: Call) -> Reply:
    following = _Following(call, event_stream.last_id(call))
    return await event_stream.reply(call, following.topics, following.read)


class _Following:
    """What one stream has said already."""

    def __init__(self, call: Call, after: int) -> None:
        self._call = call
        self._id = call.path["trigger_id"]
        self._sent = _Sent(after)
        self._trigger: dict[str, Any] | None = None
        self._targets: dict[int, Target] = {}
        self._shown: dict[int, dict[str, Any]] = {}

    def topics(self) -> Collection[str]:
        running = (each.deployment_id for each in self._targets.values() if each.status == TargetStatus.IN_PROGRESS)
        return (trigger_topic(self._id), *(deployment_topic(id) for id in running if id))

    def read(self) -> Batch:
        """``target``, ``log`` and ``trigger`` as they come, ``end`` once no more can come."""
        with self._call.services.store.read() as tx:
            trigger = shapes.shown(triggers.get(tx, self._id, self._call.project))
            events = self._changed(tx)
            named = {each.deployment_id: each for each in self._targets.values() if each.deployment_id}
            chunks = logs.chunks_of_each(tx, self._sent.after(named), _PAGE)
            now = tx.now
        ended = trigger["status"] != TriggerStatus.IN_PROGRESS
        # Whoever ends a deployment holds it, as does whoever adds to its log: who sees the end has seen all before it.
        settled = _ALL if ended else now - _SETTLED
        for deployment_id, chunk in chunks:
            target = named[deployment_id]
            said = {"server_id": target.server_id, "server_name": target.server_name, **chunk_shown(chunk)}
            events.append(Event("log", said, self._sent.add(deployment_id, chunk, settled)))
        if trigger != self._trigger:
            events.append(Event("trigger", trigger))
            self._trigger = trigger
        more = len(chunks) == _PAGE
        over = ended and not more
        return Batch([*events, Event("end", trigger)] if over else events, over, more)

    def _changed(self, tx: Tx) -> list[Event]:
        """Only of those that run, or are another than before, the run is looked at."""
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
            said = shapes.target(each, current.get(each.deployment_id or ""), tx.now)
            lasting = _lasting(said)
            if lasting != self._shown.get(each.position):
                self._shown[each.position] = lasting
                events.append(Event("target", said))
        return events


class _Sent:
    """
    How far the output of each deployment was sent.

    Chunks of several deployments do not appear in the order of their numbers. So an event's id, which is all that a
    client brings along when it asks again, is not its chunk's number but one that no new chunk can come below: after a
    break the last seconds may come twice, and nothing is left out.
    """

    def __init__(self, after: int) -> None:
        self._begin = self._floor = self._greatest = after
        self._of: dict[str, int] = {}
        #: When a chunk was begun, and the greatest number when it had been sent: what the floor will rise to.
        self._rising: deque[tuple[datetime, int]] = deque()

    def after(self, deployment_ids: Collection[str]) -> dict[str, int]:
        return {id: self._of.get(id, self._begin) for id in deployment_ids}

    def add(self, deployment_id: str, chunk: LogChunk, settled: datetime) -> int:
        """The id of its event. ``settled``: nothing from before then can come any more."""
        self._of[deployment_id] = chunk.seq
        self._greatest = max(self._greatest, chunk.seq)
        self._rising.append((chunk.at, self._greatest))
        while self._rising and self._rising[0][0] <= settled:
            self._floor = self._rising.popleft()[1]
        return self._floor


def _lasting(target: dict[str, Any]) -> dict[str, Any]:
    """Without what changes by itself: for how long a server has been silent is no news, that it is is its state."""
    run = target["run"]
    return target if run is None else {**target, "run": {**run, "silent_seconds": None}}
