"""Durations in arguments: ``90s``, ``10m``, ``2h``, ``7d``."""

from __future__ import annotations

import re
from datetime import timedelta

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_duration(text: str) -> timedelta | None:
    """Return the duration, or None if the text is none."""
    match = re.fullmatch(r"(\d{1,9})([smhd])", text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


class Duration(click.ParamType[timedelta]):
    """A duration: a click type."""

    name = "duration"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the duration."""
        duration = parse_duration(str(value))
        if duration is None:
            self.fail(f"{value!r} is no duration, such as 90s, 10m, 2h or 7d", param, ctx)
        return duration
