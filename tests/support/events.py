"""A client for server-sent events that is independent of Stoker's code."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from support.server import Served


@dataclass
class Event:
    """One event, with its data decoded from JSON."""

    name: str
    data: Any
    id: str | None = None


@contextmanager
def event_stream(stoker: Served, path: str, last: str = "", token: str | None = None) -> Iterator[Iterator[Event]]:
    """
    Yield the events of ``path``, which is below /v1/{project}.

    ``last`` is the Last-Event-ID, ``token`` the administrator's by default. A pause of a minute between lines is an
    error.
    """
    headers = {"X-Auth-Token": token or stoker.token, "Accept": "text/event-stream"}
    if last:
        headers["Last-Event-ID"] = last
    request = urllib.request.Request(f"{stoker.url}/v1/{stoker.project}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        yield _events(answer)


def _events(lines: Any) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for raw in lines:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            if fields.get("event", "hello") != "hello":
                yield Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}
