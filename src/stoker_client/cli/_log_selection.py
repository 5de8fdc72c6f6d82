"""Selects parts of a log: by time, or by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import click

from stoker_client.cli._durations import parse_duration
from stoker_client.shapes import LogChunk


class Since(click.ParamType[datetime]):
    """A duration before now (``90s``, ``10m``, ``2h``, ``1d``) or a time (``2031-05-06T02:30:00Z``)."""

    name = "since"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time in UTC."""
        duration = parse_duration(str(value))
        if duration is not None:
            return datetime.now(UTC) - duration
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(
                f"{value!r} is neither a duration (90s, 10m, 2h, 1d) nor a time (2031-05-06T02:30:00Z)", param, ctx
            )
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def is_since(chunk: LogChunk, moment: datetime | None) -> bool:
    """Whether ``chunk`` was written at ``moment`` or later. Chunks of a service without times always match."""
    time = chunk.get("time")
    return moment is None or not time or datetime.fromisoformat(time) >= moment.replace(microsecond=0)


def of_runs(chunks: Iterable[LogChunk], configs: set[str] | None) -> Iterator[LogChunk]:
    """
    Return the chunks of the runs with these configs, or all chunks if ``configs`` is None. Each run has its own config.
    """
    return (chunk for chunk in chunks if configs is None or chunk.get("config_id") in (None, *configs))
