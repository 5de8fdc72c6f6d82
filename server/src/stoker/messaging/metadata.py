"""
Queue metadata.

Names that begin with an underscore configure the service. As in Zaqar, names that are not set are shown with their
defaults and not stored. Names of Zaqar's claims, dead letters and retry policies have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.messaging import limits
from stoker.model.errors import Invalid

POST_SIZE, TTL, DELAY = "_max_messages_post_size", "_default_message_ttl", "_default_message_delay"
#: Stoker's own extension: each consumer gets the newest message, and the message stays in the queue.
KEEP_NEWEST = "_keep_newest"
_ENCRYPT = "_enable_encrypt_messages"

_DEFAULTS: dict[str, Any] = {
    POST_SIZE: limits.POST_SIZE,
    TTL: limits.MESSAGE_TTL,
    DELAY: limits.MESSAGE_DELAY,
    _ENCRYPT: False,
}
_BOUNDS = {
    POST_SIZE: (1, limits.POST_SIZE),
    TTL: (limits.SHORTEST_TTL, limits.LONGEST_TTL),
    DELAY: (0, limits.LONGEST_DELAY),
}


def add_defaults(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata with the defaults of all names that are not set."""
    return {**metadata, **{name: metadata.get(name) or default for name, default in _DEFAULTS.items()}}


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the metadata. Raises Invalid for metadata that a queue cannot have."""
    for name, (least, most) in _BOUNDS.items():
        if metadata.get(name) is not None:
            limits.check_whole(metadata[name], name, least, most)
    if metadata.get(_ENCRYPT) not in (None, False):
        raise Invalid(f"{_ENCRYPT} must be false: Stoker does not encrypt messages")
    return dict(metadata)
