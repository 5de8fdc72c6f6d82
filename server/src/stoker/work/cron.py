"""Cron expressions: compute times from five fields in a time zone. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from croniter import CroniterError, croniter

from stoker.model.errors import Invalid

_WORDS = frozenset(("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"))
#: Minutes, hours, days, months and days of the week. Letters form names of three letters, because croniter gives single
#: letters such as R and H a random meaning.
_FIELDS = re.compile(r"(([0-9*/,-]|[A-Za-z]{3})+ ){5}")
_LONGEST = 255
#: An expression that has a next time after one time has it after all.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
_UNREADABLE = (CroniterError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Cron:
    """
    A valid cron expression in a time zone.

    A time that the zone skips in spring occurs when the clock is set forward. A time that occurs twice in autumn counts
    once, unless the expression applies to every hour.
    """

    expression: str
    zone: str

    def after(self, moment: datetime) -> datetime:
        """Return the first time after ``moment``, in UTC."""
        return next(self.times(moment))

    def upto(self, moment: datetime) -> datetime:
        """Return the last time not later than ``moment``, in UTC."""
        times = self._from(moment + SECOND)
        return next(self._counted(lambda: times.get_prev(datetime)))

    def times(self, after: datetime) -> Iterator[datetime]:
        """
        Return an iterator over the times after ``after``, in UTC. The iterator raises Invalid if there is no time.
        """
        times = self._from(after)
        return self._counted(lambda: times.get_next(datetime))

    def _from(self, moment: datetime) -> Any:
        return croniter(self.expression, moment.astimezone(ZoneInfo(self.zone)))

    def _counted(self, another: Callable[[], datetime]) -> Iterator[datetime]:
        zone = ZoneInfo(self.zone)
        hourly = self.expression == "@hourly" or self.expression.split()[1:2] == ["*"]
        while True:
            try:
                time = another().astimezone(UTC)
            except _UNREADABLE:
                raise Invalid(f"cron: {self.expression!r} never comes: choose a day that there is") from None
            if hourly or not time.astimezone(zone).fold:
                yield time


def read(expression: Any, zone: Any, where: str = "") -> Cron:
    """
    Validate an expression and a time zone, such as ``"0 2 * * sun"`` and ``"Europe/Vienna"``.

    ``where`` precedes field names in error messages. Raises Invalid if the expression is malformed or never occurs, or
    if the time zone is unknown.
    """
    text = " ".join(expression.split()) if isinstance(expression, str) and len(expression) <= _LONGEST else ""
    if text not in _WORDS and not _FIELDS.fullmatch(f"{text} "):
        raise Invalid(
            f"{where}cron must be an expression of five fields (minute, hour, day, month, day of the week), like"
            f' "0 2 * * sun", not {expression!r:.100}'
        )
    return _read(text, zone_of(zone, where).key, where)


@lru_cache(maxsize=1024)
def _read(text: str, zone: str, where: str) -> Cron:
    try:
        croniter(text)
    except _UNREADABLE as error:
        raise Invalid(f"{where}cron: {text!r} cannot be read: {error!s:.200}") from None
    cron = Cron(text, zone)
    try:
        cron.after(_ANY_TIME)
    except Invalid as error:
        raise Invalid(f"{where}{error.message}") from None
    return cron


def zone_of(name: Any, where: str = "") -> ZoneInfo:
    """Return the time zone with this name. Raises Invalid if it is unknown."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):  # zoneinfo searches files, hence OSError
        raise Invalid(f"{where}timezone {name!r:.100} is not known: use a name such as Europe/Vienna") from None
