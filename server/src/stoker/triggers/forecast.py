"""The forecast of schedules: when they will start, and which of their servers will wait for a maintenance window."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from stoker.model.errors import StokerError
from stoker.model.trigger import Mode, Schedule
from stoker.policy import authorizer, windows
from stoker.policy.windows import Window
from stoker.stacks.engine import Engine
from stoker.store import rows, triggers
from stoker.store.tx import Tx
from stoker.triggers.schedules import read_request
from stoker.triggers.targets import resolve
from stoker.work import cron

#: Periods of one set of windows: those of a week that open each hour.
_MOST_PERIODS = 168


class ScheduledTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time at which a schedule will start its trigger, on the servers that the trigger would have now."""

    schedule_id: str
    schedule_name: str
    time: str
    servers: int
    waiting: Annotated[int, Meta(description="The number of servers whose maintenance window is closed at the time")]
    waits_until: Annotated[str | None, Meta(description="When the last of these windows opens")]
    problem: Annotated[str | None, Meta(description="Why nothing could start now")]


class OpenPeriod(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A period in which servers of a schedule have an open maintenance window."""

    schedule_id: str
    begin: str
    end: str
    servers: Annotated[int, Meta(description="The number of servers with these windows")]


class Forecast(NamedTuple):
    """``more``: whether there are more times. ``windows`` are those of the schedules that ``times`` has."""

    times: list[ScheduledTime]
    more: bool
    windows: list[OpenPeriod]


def forecast(tx: Tx, engine: Engine, project_id: str, begin: datetime, end: datetime, limit: int) -> Forecast:
    """Return the first ``limit`` times of the project's schedules in ``[begin, end)``."""
    listed = [schedule for schedule in triggers.list_schedules(tx, project_id, end) if schedule.enabled]
    merged = heapq.merge(*(_list_times(schedule, begin, end) for schedule in listed), key=lambda pair: pair[0])
    pairs = list(islice(merged, limit + 1))
    due = {schedule.id: schedule for _, schedule in pairs[:limit]}
    targets = {id: _Targets(tx, engine, schedule) for id, schedule in due.items()}
    return Forecast(
        [targets[schedule.id].at(time) for time, schedule in pairs[:limit]],
        len(pairs) > limit,
        [period for target in targets.values() for period in target.list_windows(begin, end)],
    )


def _list_times(schedule: Schedule, begin: datetime, end: datetime) -> Iterator[tuple[datetime, Schedule]]:
    next_at = schedule.next_at
    if next_at is None:
        return
    if next_at >= begin:
        yield next_at, schedule
    if schedule.cron is not None:
        times = cron.read(schedule.cron, schedule.timezone).times(max(next_at, begin - cron.SECOND))
        yield from ((time, schedule) for time in takewhile(lambda time: time < end, times))


class _Targets:
    """The servers of a schedule's trigger, counted by their maintenance windows."""

    def __init__(self, tx: Tx, engine: Engine, schedule: Schedule) -> None:
        self._schedule = schedule
        self._windows: Counter[Sequence[Window]] = Counter()
        self._problem: str | None = None
        try:
            request = read_request(schedule)
            resolved = resolve(tx, engine, schedule.project_id, request)
        except StokerError as error:
            self._problem = tx.secrets.redact(error.message)
            return
        for server in {server.id: server for server, _ in resolved.targets}.values():
            policy = authorizer.load_policy(None if server.policy is None else rows.dump(server.policy))
            # a preview changes nothing, so it waits for no window
            self._windows[() if request.mode is Mode.PREVIEW else tuple(policy.windows)] += 1

    def list_windows(self, begin: datetime, end: datetime) -> Iterator[OpenPeriod]:
        """Yield the first periods with open windows, for each set of windows that servers have."""
        for own, count in self._windows.items():
            for opening, closing in windows.list_periods(own, begin, end)[:_MOST_PERIODS]:
                first, last = rows.heat_time(opening), rows.heat_time(closing)
                yield OpenPeriod(schedule_id=self._schedule.id, begin=first, end=last, servers=count)

    def at(self, time: datetime) -> ScheduledTime:
        """Return what the schedule will do at a time."""
        openings = {own: windows.find_opening(own, time) for own in self._windows}
        last = max((opening for opening in openings.values() if opening is not None), default=None)
        return ScheduledTime(
            schedule_id=self._schedule.id,
            schedule_name=self._schedule.name,
            time=rows.heat_time(time),
            servers=self._windows.total(),
            waiting=sum(count for own, count in self._windows.items() if openings[own] is not None),
            waits_until=None if last is None else rows.heat_time(last),
            problem=self._problem,
        )
