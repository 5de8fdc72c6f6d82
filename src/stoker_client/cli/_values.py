"""Parses ``NAME=VALUE`` arguments, reads files in arguments, and finds the options that were set."""

import sys
from collections.abc import Mapping, Sequence
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
