"""
Conversion between values and columns: the only module that knows how values are stored.

Times are integers: microseconds since 1970 in UTC. Structures are JSON texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

#: The LIMIT of a query for all rows.
UNLIMITED = 2**62
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
#: Serializes as JSON, to bytes.
encode_json = msgspec.json.Encoder().encode
#: Parses JSON. Most columns with JSON are read on hot paths, so this is the decoder's own method.
load = msgspec.json.Decoder().decode


def dump(value: Any) -> str:
    """Serialize a value as JSON."""
    return encode_json(value).decode()


def to_micros(moment: datetime) -> int:
    """Convert a time to microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def to_duration(period: timedelta) -> int:
    """Convert a period to microseconds."""
    return period // MICROSECOND


def from_micros(stored: int) -> datetime:
    """Convert microseconds since 1970 to a time in UTC."""
    return EPOCH + timedelta(0, 0, stored)


def heat_time(when: datetime) -> str:
    """Format a time as Heat does: UTC, without fractions of a second, with the suffix Z."""
    return f"{when.year:04}-{when.month:02}-{when.day:02}T{when.hour:02}:{when.minute:02}:{when.second:02}Z"


def count_fitting(sizes: Sequence[int], most: int) -> int:
    """Return how many of the first rows of these sizes have ``most`` bytes together; at least 1 if there is a row."""
    return max(sum(total <= most for total in itertools.accumulate(sizes)), 1) if sizes else 0
