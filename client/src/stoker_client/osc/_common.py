"""Shared functions of the commands: the client, argument types and output."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from stoker_client.client import Client

Row = tuple[Any, ...]


class HasApp(Protocol):
    """A command of the `openstack` client."""

    app: Any


def client_of(command: HasApp) -> Client:
    """Return a client with the login of the `openstack` command."""
    return command.app.client_manager.stoker


def pair(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``. An argparse type."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not <key=value>")
    return name, value


def percentage(text: str) -> int:
    """Parse a whole number from 0 to 100. An argparse type."""
    if not text.isdecimal() or int(text) > 100:
        raise ArgumentTypeError(f"{text!r} is no percentage")
    return int(text)


def count(text: str) -> int:
    """Parse a whole number of at least 1. An argparse type."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def list_rows(things: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[Sequence[str], list[Row]]:
    """Return columns and rows for a lister command."""
    return columns, [tuple(thing.get(column) for column in columns) for thing in things]


def display(thing: Mapping[str, Any], parsed: Namespace) -> tuple[Row, Row]:
    """Return names and values for a show command: structures as they are for programs, as JSON text for tables."""
    if parsed.formatter in ("json", "yaml"):
        return tuple(thing), tuple(thing.values())
    return tuple(thing), tuple(
        json.dumps(value, indent=2, ensure_ascii=False) if isinstance(value, dict | list) else value
        for value in thing.values()
    )
