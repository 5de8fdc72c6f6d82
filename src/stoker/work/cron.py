"""When a cron expression's times are: five fields, read in a time zone. Pure."""

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
#: Minutes, hours, days, months and days of the week. Letters are names: croniter knows others, that stand for chance.
_FIELDS = re.compile(r"(([0-9*/,-]|[A-Za-z]{3})+ ){5}")
_LONGEST = 255
_SECOND = timedelta(seconds=1)
_UNREADABLE = (CroniterError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Cron:
    """
    What a time zone skips in spring comes when its clock goes on; what it has twice in autumn comes once, unless the
    expression is one of every hour.
    """

    expression: str
    zone: str

    def after(self, moment: datetime) -> datetime:
        """The first time after ``moment``, in UTC."""
        return next(self.times(moment))

    def upto(self, moment: datetime) -> datetime:
        """The last time until ``moment``, itself included, in UTC."""
        found = self._from(moment + _SECOND)
        return next(self._counted(lambda: found.get_prev(datetime)))

    def times(self, after: datetime) -> Iterator[datetime]:
        """Those that come after it. Raises Invalid, where there is none."""
        found = self._from(after)
        return self._counted(lambda: found.get_next(datetime))

    def _from(self, moment: datetime) -> Any:
        return croniter(self.expression, moment.astimezone(ZoneInfo(self.zone)))

    def _counted(self, another: Callable[[], datetime]) -> Iterator[datetime]:
        zone = ZoneInfo(self.zone)
        hourly = self.expression == "@hourly" or self.expression.split()[1:2] == ["*"]
        while True:
            try:
                found = another().astimezone(UTC)
            except _UNREADABLE:
                raise Invalid(f"cron: {self.expression!r} never comes: choose a day that there is") from None
            if hourly or not found.astimezone(zone).fold:
                yield found


def read(expression: Any, zone: Any, where: str = "") -> Cron:
    """``where`` stands before names in errors. Raises Invalid for what is none, never comes, or is in no time zone."""
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
    made = Cron(text, zone)
    try:
        made.after(datetime.now(UTC))
    except Invalid as error:
        raise Invalid(f"{where}{error.message}") from None
    return made


def zone_of(name: Any, where: str = "") -> ZoneInfo:
    """Raises Invalid."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):  # it is looked for among files
        raise Invalid(f"{where}timezone {name!r:.100} is not known: use a name such as Europe/Vienna") from None
