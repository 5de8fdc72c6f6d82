"""Opening and closing times of maintenance windows. Pure functions: the caller passes the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import takewhile

from stoker.work.cron import Cron

#: Number of adjoining windows after which a chain of windows is shown as never closing.
_CHAINED = 60


@dataclass(frozen=True, slots=True)
class Window:
    """A window opens at each time of the cron expression and lasts ``minutes``, also across a change of the clock."""

    begins: Cron
    minutes: int


def find_opening(windows: Sequence[Window], now: datetime) -> datetime | None:
    """Return when the next window opens, or None if a run may begin now: a window is open, or there are none."""
    return _find_opening(tuple(windows), _minute(now))


def find_closing(windows: Sequence[Window], now: datetime) -> datetime | None:
    """Return when the current chain of adjoining windows ends; None if none is open or the chain never ends."""
    end, goes_on = _follow_chain(tuple(windows), _minute(now))
    return None if goes_on else end


def find_change(windows: Sequence[Window], now: datetime) -> datetime | None:
    """
    Return until when the state of the windows is certain: their next opening, or the end of the current chain, of which
    a long one is known in part. None: there are no windows.
    """
    return find_opening(windows, now) or _follow_chain(tuple(windows), _minute(now))[0]


def list_periods(windows: Sequence[Window], begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Return the periods in ``[begin, end)`` in which a window is open. Adjoining and overlapping windows are one."""
    open_times = sorted(
        (time, time + timedelta(minutes=window.minutes))
        for window in windows
        for time in takewhile(end.__gt__, window.begins.times(begin - timedelta(minutes=window.minutes)))
    )
    periods: list[tuple[datetime, datetime]] = []
    for opening, closing in open_times:
        if periods and opening <= periods[-1][1]:
            periods[-1] = periods[-1][0], max(periods[-1][1], closing)
        else:
            periods.append((opening, closing))
    return [(max(opening, begin), min(closing, end)) for opening, closing in periods]


def _minute(now: datetime) -> datetime:
    """Round down to the minute, the resolution of windows, so that the cached functions compute once a minute."""
    return now.replace(second=0, microsecond=0)


@lru_cache(maxsize=4096)
def _find_opening(windows: tuple[Window, ...], now: datetime) -> datetime | None:
    if not windows or _until(windows, now) is not None:
        return None
    return min(window.begins.after(now) for window in windows)


@lru_cache(maxsize=4096)
def _follow_chain(windows: tuple[Window, ...], now: datetime) -> tuple[datetime | None, bool]:
    """Return the end of the first windows of the current chain, or None, and whether the chain goes on after them."""
    end, until = None, _until(windows, now)
    for _ in range(_CHAINED):
        if until is None:
            break
        end, until = until, _until(windows, until)
    return end, until is not None


def _until(windows: Sequence[Window], now: datetime) -> datetime | None:
    """Return the latest end of the windows that are open at ``now``, or None."""
    ends = (window.begins.upto(now) + timedelta(minutes=window.minutes) for window in windows)
    return max((end for end in ends if end > now), default=None)
