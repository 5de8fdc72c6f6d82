"""Facts: what a server's agent reports about its machine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

#: The member for facts of the site, whose names Stoker does not know.
CUSTOM = "custom"
#: Why the agent can start no run, for example because its disk is full; absent if it can.
PROBLEM = "problem"
#: The server's labels. Stoker adds them to the facts that it shows: an agent cannot choose its labels.
LABELS = "labels"
#: Names of facts. A selector that names anything else means a label.
NAMES = frozenset(
    (
        *("os", "kernel", "arch", "cpus", "memory_mb", "hostname", "fqdn", "address", "networks", "cloud"),
        *("virtualization", "container", "python", "agent", "hooks", "tools", PROBLEM, CUSTOM, LABELS),
    )
)


class FactsSummary(Struct, frozen=True, kw_only=True):
    """What lists show of the newest facts of a server."""

    server_id: str
    #: Name and version of the operating system, for people.
    os: str | None
    #: The address with which the machine reaches other networks.
    address: str | None
    #: Why the agent can start no run, for people.
    problem: str | None
    reported_at: datetime


class ServerFacts(FactsSummary, frozen=True, kw_only=True):
    """The newest facts of a server."""

    facts: Mapping[str, Any]


def with_labels(facts: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of a server with its labels, which are left out if there are none, like any empty fact."""
    return {**facts, LABELS: dict(labels)} if labels else dict(facts)


def describe_os(facts: Mapping[str, Any]) -> str | None:
    """Return the name and the version of the operating system, for people, or None."""
    os = facts.get("os")
    words = [os.get("name") or os.get("id"), os.get("version")] if isinstance(os, Mapping) else []
    return " ".join(str(word) for word in words if word) or None
