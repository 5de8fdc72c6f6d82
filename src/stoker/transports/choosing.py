"""
Which transport AUTO means.

The order is that of the specifications: Stoker's own channel where an agent of ours has one; else the messaging
service, else the object store, where there is one; else CloudFormation's API, which is always there.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.transports.base import Site

AUTO = "AUTO"


def metadata(site: Site, *, own_agent: bool) -> str:
    if own_agent:
        return "STOKER_PUSH"
    return _first(site, "ZAQAR_MESSAGE", "POLL_TEMP_URL", "POLL_SERVER_CFN")


def signal(site: Site, *, own_agent: bool) -> str:
    if own_agent:
        return "STOKER_SIGNAL"
    return _first(site, "ZAQAR_SIGNAL", "TEMP_URL_SIGNAL", "CFN_SIGNAL")


def _first(site: Site, queue: str, object: str, otherwise: str) -> str:
    choices: Sequence[tuple[bool, str]] = ((site.has_queues, queue), (site.has_objects, object))
    return next((name for there, name in choices if there), otherwise)
