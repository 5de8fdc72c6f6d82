"""
Resolution of the transport name ``AUTO``.

The order follows the specifications: Stoker's own channel if the server runs Stoker's agent; otherwise the messaging
service, then the object store, if the site has one; otherwise the CloudFormation API, which every site has.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.transports.base import Platform

AUTO = "AUTO"


def select_metadata(platform: Platform, *, own_agent: bool, carried: bool = True) -> str:
    """
    Return the name of a metadata transport.

    ``own_agent``: the server runs Stoker's agent. ``carried`` False: documents must not go through an object store or a
    queue.
    """
    if own_agent:
        return "STOKER_PUSH"
    if not carried:
        return "POLL_SERVER_CFN"
    return _first(platform, "ZAQAR_MESSAGE", "POLL_TEMP_URL", "POLL_SERVER_CFN")


def select_signal(platform: Platform, *, own_agent: bool) -> str:
    """Return the name of a signal transport. ``own_agent``: the server runs Stoker's agent."""
    if own_agent:
        return "STOKER_SIGNAL"
    return _first(platform, "ZAQAR_SIGNAL", "TEMP_URL_SIGNAL", "CFN_SIGNAL")


def _first(platform: Platform, queue: str, object: str, otherwise: str) -> str:
    choices: Sequence[tuple[bool, str]] = ((platform.has_queues, queue), (platform.has_objects, object))
    return next((name for there, name in choices if there), otherwise)
