"""When maintenance windows open and close. Pure: what time it is comes from whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from stoker.work.cron import Cron

#: Windows that follow one another without a gap are looked through so often before they count as never closing.
_CHAINED = 60


@dataclass(frozen=True, slots=True)
class Window:
    """It lasts its minutes, whatever the clock does meanwhile."""

    begins: Cron
    minutes: int


def opens(windows: Sequence[Window], now: datetime) -> datetime | None:
    """When the next one opens; None when one is open, or when there are none: nothing has to wait."""
    return _opens(tuple(windows), _minute(now))


def closes(windows: Sequence[Window], now: datetime) -> datetime | None:
    """When the last of those closes that are open or open before; None: none is open, or they never close."""
    return _closes(tuple(windows), _minute(now))


def _minute(now: datetime) -> datetime:
    """Windows know no less; so what is asked of one often is worked out once a minute."""
    return now.replace(second=0, microsecond=0)


@lru_cache(maxsize=4096)
def _opens(windows: tuple[Window, ...], now: datetime) -> datetime | None:
    if not windows or _until(windows, now) is not None:
        return None
    return min(each.begins.after(now) for each in windows)


@lru_cache(maxsize=4096)
def _closes(windows: tuple[Window, ...], now: datetime) -> datetime | None:
    end, until = None, _until(windows, now)
    for _ in range(_CHAINED):
        if until is None:
            return end
        end, until = until, _until(windows, until)
    return None


def _until(windows: Sequence[Window], now: datetime) -> datetime | None:
    """When the longest of those closes that are open."""
    ends = (each.begins.upto(now) + timedelta(minutes=each.minutes) for each in windows)
    return max((end for end in ends if end > now), default=None)
