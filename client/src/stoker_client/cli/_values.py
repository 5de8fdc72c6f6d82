"""Parses ``NAME=VALUE`` arguments, reads files in arguments, and finds the options that were set."""

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from stoker_client.errors import BadInput


def pair(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``. A click type."""
    name, equals, content = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, content


def read_text(path: str, what: str) -> str:
    """Return the text of a file; ``-`` is standard input. ``what`` names the option in errors."""
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as problem:
        raise BadInput(f"cannot read {path} (named by {what}): {problem.strerror}") from problem
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} (named by {what}) is not UTF-8 text: byte {problem.start} is none") from problem


def merge(pairs: Sequence[tuple[str, str]], files: Sequence[tuple[str, str]], what: str) -> dict[str, str]:
    """Merge values from arguments and from files. Arguments take precedence."""
    return {name: read_text(path, what) for name, path in files} | dict(pairs)


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the user set."""
    return {name: value for name, value in options.items() if value is not None}


def one_of(*options: bool) -> bool:
    """Whether exactly one of several alternatives is used."""
    return sum(options) == 1


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
