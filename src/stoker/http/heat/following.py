"""/v1/{project}/software_triggers/{id}/events: all that happens on the servers of a trigger (Stoker's own)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from stoker.http import event_stream
from stoker.http.call import Call, Reply
from stoker.http.event_stream import Batch, Event
from stoker.http.heat import triggers as shapes
from stoker.http.heat.logs import chunk_shown
from stoker.model.trigger import Target, TargetStatus, TriggerStatus
from stoker.store import runs, targets, triggers
from stoker.store.bell import deployment_topic, trigger_topic
from stoker.store.tx import Tx

_PAGE = 200


async def follow(call: Call) -> Reply:
    following = _Following(call, event_stream.last_id(call))
    return await event_stream.reply(call, following.topics, following.read)


class _Following:
    """What one stream has said already."""

    def __init__(self, call: Call, after: int) -> None:
        self._call = call
        self._id = call.path["trigger_id"]
        self._after = after
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
            chunks = targets.chunks(tx, self._id, self._after, _PAGE)
        named = {each.deployment_id: each for each in self._targets.values()}
        for deployment_id, chunk in chunks:
            target = named[deployment_id]
            said = {"server_id": target.server_id, "server_name": target.server_name, **chunk_shown(chunk)}
            events.append(Event("log", said, chunk.seq))
            self._after = chunk.seq
        if trigger != self._trigger:
            events.append(Event("trigger", trigger))
            self._trigger = trigger
        over = len(chunks) < _PAGE and trigger["status"] != TriggerStatus.IN_PROGRESS
        return Batch([*events, Event("end", trigger)] if over else events, over)

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
        shown = {each.position: _shown(each, current, tx.now) for each in looked_at}
        changed = {position: said for position, said in shown.items() if said != self._shown.get(position)}
        self._shown |= changed
        return [Event("target", said) for said in changed.values()]


def _shown(target: Target, current: dict[str, Any], now: datetime) -> dict[str, Any]:
    return shapes.target(target, current.get(target.deployment_id or ""), now)
