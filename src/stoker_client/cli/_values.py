"""``NAME=VALUE`` arguments, files given as arguments, and which of the options were given."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from stoker_client.errors import BadInput


def pair(text: str) -> tuple[str, str]:
    """The two sides of ``NAME=VALUE``: a click type."""
    name, equals, content = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, content


def read_text(path: str, what: str) -> str:
    """The text of a file, ``-`` being standard input. ``what`` names the option in errors."""
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as problem:
        raise BadInput(f"cannot read {path} (named by {what}): {problem.strerror}") from problem
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} (named by {what}) is not UTF-8 text: byte {problem.start} is none") from problem


def merged(pairs: Sequence[tuple[str, str]], files: Sequence[tuple[str, str]], what: str) -> dict[str, str]:
    """Values given directly and values given as files, the direct ones winning."""
    return {name: read_text(path, what) for name, path in files} | dict(pairs)


def changed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of all options, those that the user gave."""
    return {name: value for name, value in given.items() if value is not None}


def one_of(*given: bool) -> bool:
    """Whether exactly one of several ways to say something is used."""
    return sum(given) == 1
