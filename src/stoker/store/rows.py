"""Rows to values and back: the only place that knows how a value is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: SQLite takes 32,766 values a statement, PostgreSQL 65,535.
_PORTION = 30_000
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def dump(value: Any) -> str:
    return _encoder.encode(value).decode()


def load(text: str | bytes) -> Any:
    return _decoder.decode(text)


def load_optional(text: str | None) -> Any:
    return None if text is None else _decoder.decode(text)


def stamp(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def portions(ids: Iterable[str]) -> Iterator[list[str]]:
    """So many at a time as a statement may have; few enough are one."""
    found = list(ids)
    for start in range(0, len(found), _PORTION):
        yield found[start : start + _PORTION]


def stamp_optional(moment: datetime | None) -> int | None:
    return None if moment is None else stamp(moment)


def moment(stored: int) -> datetime:
    return _EPOCH + timedelta(microseconds=stored)


def moment_optional(stored: int | None) -> datetime | None:
    return None if stored is None else moment(stored)


def heat_time(when: datetime) -> str:
    """Heat's times: UTC, no fraction, a Z."""
    return f"{when.year:04}-{when.month:02}-{when.day:02}T{when.hour:02}:{when.minute:02}:{when.second:02}Z"
