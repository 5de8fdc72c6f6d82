"""What the commands share: the client, and how things are shown."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from stoker_client.client import Client

Row = tuple[Any, ...]


class HasApp(Protocol):
    """A command of the `openstack` command."""

    app: Any


def client_of(command: HasApp) -> Client:
    """Logged in as the `openstack` command is."""
    return cast(Client, command.app.client_manager.stoker)


def pair(text: str) -> tuple[str, str]:
    """The two sides of ``NAME=VALUE``: a type of arguments."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not <key=value>")
    return name, value


def percentage(text: str) -> int:
    """A whole number up to 100: a type of arguments."""
    if not text.isdecimal() or int(text) > 100:
        raise ArgumentTypeError(f"{text!r} is no percentage")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1 on: a type of arguments."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def listed(things: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[Sequence[str], list[Row]]:
    """For a lister."""
    return columns, [tuple(thing.get(column) for column in columns) for thing in things]


def shown(thing: Mapping[str, Any], parsed: Namespace) -> tuple[Row, Row]:
    """For a command that shows one: what has parts as it is where programs read it, as JSON where people do."""
    if parsed.formatter in ("json", "yaml"):
        return tuple(thing), tuple(thing.values())
    return tuple(thing), tuple(
        json.dumps(value, indent=2, ensure_ascii=False) if isinstance(value, dict | list) else value
        for value in thing.values()
    )
