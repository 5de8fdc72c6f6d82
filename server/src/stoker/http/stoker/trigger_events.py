"""The events of a trigger and its servers."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace as replace_event
from datetime import UTC, datetime, timedelta
from operator import attrgetter

from msgspec.structs import replace

from stoker.http.contracts import fill
from stoker.http.event_stream import Batch, Event, Reader, parse_number
from stoker.http.stoker.logs import OutputChunk
from stoker.http.stoker.triggers import (
    MOST_TARGETS,
    CompactTarget,
    TriggerTarget,
    decode_cursor,
    encode_cursor,
    find_runs,
    serialize,
    serialize_compact,
    serialize_target,
)
from stoker.model.deployment import LogChunk
from stoker.model.trigger import Target, TargetStatus, TriggerStatus
from stoker.store import runs, targets, triggers
from stoker.store.notifier import ALL, deployment_topic, trigger_topic
from stoker.store.tx import Tx

#: After this time, all transactions that were open when a chunk was created have ended.
_SETTLED = timedelta(seconds=10)
#: Pause between two reads of streams without output, whose states people look at, in seconds.
_STATE_SECONDS = 0.25
_ALL = datetime.max.replace(tzinfo=UTC)


class TriggerOutput(OutputChunk):
    """A chunk of output with its server, and the resource whose deployment the run repeats."""

    server_id: str
    server_name: str
    resource_name: str | None


class TriggerReader(Reader):
    """
    The position of a stream among the events of a trigger: ``target``, ``state`` (compact), ``log``, ``trigger``.

    A position is the cursor of the targets that were sent with their output, and the last output that was sent, joined
    by a dot. A read costs as much as the targets that have changed since the previous one, and those that are running.
    """

    def __init__(self, id: str, project: str, after: str, kinds: frozenset[str] = frozenset()) -> None:
        super().__init__(kinds or ("target", "log", "trigger"))
        self._id, self._project = id, project
        cursor, output = _parse(after)
        self._sent = _SentLogs(output)
        self.is_repeatable = "log" not in self._kinds
        if self.is_repeatable:
            self.pause = _STATE_SECONDS
        #: Revision and position of the last target that was read, and of the last whose output was sent completely.
        self._after = self._complete = decode_cursor(cursor)
        self._is_first = True
        #: The running targets, and their last events, by position.
        self._running: dict[int, Target] = {}
        self._shown: dict[int, TriggerTarget | CompactTarget] = {}
        #: The targets whose output was not sent completely, by deployment.
        self._with_output: dict[str, Target] = {}
        #: Those of them whose output a read must look at, although nothing was notified.
        self._unread: set[str] = set()

    def topics(self) -> Collection[str]:
        running = (target.deployment_id for target in self._running.values())
        return (trigger_topic(self._id), *(deployment_topic(id) for id in running if id))

    def read(self, tx: Tx, notified: Collection[str] | None = None) -> Batch:
        """
        Return the next events.

        The events of the stream's kinds as they occur, and ``end`` when no more events can follow. Of the running
        targets, only those whose topics are in ``notified`` are read; None: all.
        """
        batch = self._read(tx, notified)
        if self.is_repeatable or not (self._unread or batch.more):
            self._complete = self._after
        if batch.events:  # a stream that ends within the batch continues before it
            batch.events[-1] = replace_event(batch.events[-1], id=self._position(self._sent.floor))
        return batch

    def _position(self, output: int) -> str:
        return f"{encode_cursor(*self._complete)}.{output}"

    def _read(self, tx: Tx, notified: Collection[str] | None) -> Batch:
        start = self._start(tx) if self._is_first else []
        trigger = serialize(tx, triggers.get(tx, self._id, self._project))
        ended = trigger.status != TriggerStatus.IN_PROGRESS
        if ended:
            notified = None  # the last read misses nothing, whatever became of the notifications
        changed = targets.list_changed(tx, self._id, self._after, MOST_TARGETS)
        self._note(changed)
        if len(changed) == MOST_TARGETS:
            return Batch([*start, *self._compare(tx, changed)], more=True)
        positions = {target.position for target in changed}
        unchanged = [target for position, target in self._running.items() if position not in positions]
        events = self._compare(tx, [*changed, *(target for target in unchanged if _is_notified(target, notified))])
        output, more = self._read_output(tx, notified, ended=ended)
        events = [*start, *events, *output, *self.changes("trigger", trigger)]
        over = ended and not more
        return Batch([*events, Event("end", trigger)] if over else events, over, more)

    def _start(self, tx: Tx) -> list[Event]:
        """
        Find the targets in progress of a stream that continues: their runs have changed without a new revision.

        Returns the event for a cursor that is not of this trigger's past.
        """
        self._is_first = False
        trigger = triggers.get(tx, self._id, self._project)
        if self._after[0] > trigger.revision + 1:
            self._after = self._complete = (0, -1)
            return [Event("resync", {"reason": "the cursor is unknown: all targets follow"})]
        if self._after[0]:
            self._note(targets.page(tx, self._id, limit=trigger.total, status=TargetStatus.IN_PROGRESS), is_new=False)
        return []

    def _read_output(self, tx: Tx, notified: Collection[str] | None, *, ended: bool) -> tuple[list[Event], bool]:
        """Return ``log`` events, and whether there may be more."""
        if "log" not in self._kinds:
            return [], False
        self._unread |= {id for id, target in self._with_output.items() if _is_notified(target, notified)}
        chunks, more = runs.page_outputs(tx, self._sent.after(self._unread))
        # Ending a deployment and appending to its log both lock the deployment. A reader that sees the end sees all
        # output before it.
        settled = _ALL if ended else tx.now - _SETTLED
        events = []
        for deployment_id, chunk in chunks:
            target = self._with_output[deployment_id]
            names = ("server_id", "server_name", "resource_name")
            output = fill(TriggerOutput, chunk, **{name: getattr(target, name) for name in names})
            events.append(Event("log", output, self._position(self._sent.add(deployment_id, chunk, settled))))
        if not more:
            self._unread.clear()
            self._with_output = {
                target.deployment_id: target for target in self._running.values() if target.deployment_id
            }
        return events, more

    def _note(self, changed: Sequence[Target], *, is_new: bool = True) -> None:
        for target in changed:
            if is_new:
                self._after = (target.revision, target.position)
            self._shown.pop(target.position, None)
            if target.status == TargetStatus.IN_PROGRESS:
                self._running[target.position] = target
            else:
                self._running.pop(target.position, None)
            if target.deployment_id and "log" in self._kinds:
                self._with_output[target.deployment_id] = target
                self._unread.add(target.deployment_id)

    def _compare(self, tx: Tx, some: Sequence[Target]) -> list[Event]:
        """Return ``target`` and ``state`` events of the targets that have changed, or whose runs have."""
        if self._kinds.isdisjoint(("target", "state")):
            return []
        name, serialize_one = ("target", serialize_target) if "target" in self._kinds else ("state", serialize_compact)
        # the runs of ended targets have outputs, which a compact target does not need
        current = find_runs(tx, [each for each in some if name == "target" or each.status == TargetStatus.IN_PROGRESS])
        events = []
        for target in sorted(some, key=attrgetter("position")):
            shown = serialize_one(tx, target, current.get(target.deployment_id or ""))
            lasting = _without_durations(shown)
            if lasting != self._shown.get(target.position):
                events.append(Event(name, shown))
                if target.position in self._running:
                    self._shown[target.position] = lasting
        return events


def _parse(position: str) -> tuple[int, int]:
    """Return the cursor of the targets and the last output of a position; zeros, the beginning, for any other text."""
    cursor, output = map(parse_number, position.partition(".")[::2])
    return (0, 0) if cursor is None or output is None else (cursor, output)


class _SentLogs:
    """
    The output of each deployment that the stream has already sent.

    Chunks of several deployments do not become visible in the order of their numbers. The id of an event is all that a
    reconnecting client sends. The id is therefore not the number of the event's chunk, but a lower bound for the
    numbers of all new chunks. After a reconnect, the last seconds may be sent twice, but nothing is missing.
    """

    def __init__(self, after: int) -> None:
        #: The id of the last event.
        self.floor = after
        self._begin = self._greatest = after
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
            self.floor = self._rising.popleft()[1]
        return self.floor


def _is_notified(target: Target, notified: Collection[str] | None) -> bool:
    return notified is None or ALL in notified or deployment_topic(target.deployment_id or "") in notified


def _without_durations(target: TriggerTarget | CompactTarget) -> TriggerTarget | CompactTarget:
    """Return the target without durations. The state UNRESPONSIVE is an event, but its growing duration is not."""
    if isinstance(target, CompactTarget) or target.run is None:
        return target
    return replace(target, run=replace(target.run, unresponsive_seconds=None))
