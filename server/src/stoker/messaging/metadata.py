"""
Queue metadata.

Names that begin with an underscore configure the service. As in Zaqar, names that are not set are shown with their
defaults and not stored. Names of Zaqar's claims, dead letters and retry policies have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from stoker import typed_values
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


class _Options(Struct):
    """The metadata that configure the service."""

    post_size: Annotated[int, Meta(ge=1, le=limits.POST_SIZE)] | None = field(name=POST_SIZE, default=None)
    ttl: Annotated[int, Meta(ge=limits.SHORTEST_TTL, le=limits.LONGEST_TTL)] | None = field(name=TTL, default=None)
    delay: Annotated[int, Meta(ge=0, le=limits.LONGEST_DELAY)] | None = field(name=DELAY, default=None)


def add_defaults(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata with the defaults of all names that are not set."""
    return {**metadata, **{name: metadata.get(name) or default for name, default in _DEFAULTS.items()}}


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the metadata. Raises Invalid for metadata that a queue cannot have."""
    typed_values.convert(metadata, _Options, "the metadata")
    if metadata.get(_ENCRYPT) not in (None, False):
        raise Invalid(f"{_ENCRYPT} must be false: Stoker does not encrypt messages")
    return dict(metadata)
