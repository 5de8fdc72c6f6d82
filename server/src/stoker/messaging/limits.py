"""
Limits of the messaging service, which are Zaqar's defaults, checks of values, and the metadata of queues, which may
lower the limits. Times are seconds, sizes bytes.

Metadata whose names begin with an underscore configure the service. As in Zaqar, names that are not set are shown with
their defaults and not stored. Names of Zaqar's claims, dead letters and retry policies have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from stoker import json_values
from stoker.model.errors import Invalid

QUEUE_NAME = 64
METADATA_SIZE = 64 * 1024
#: Default and maximum number of queues, messages or subscriptions in a list, and of messages in a pop.
PAGE, LONGEST_PAGE = 10, 20

POST_SIZE = 256 * 1024
#: Zaqar limits only the size. This is the number of ids that a request for the answer's Location may contain.
MESSAGES_A_POST = 20
MESSAGE_TTL, SHORTEST_TTL, LONGEST_TTL = 3600, 60, 1_209_600
MESSAGE_DELAY, LONGEST_DELAY = 0, 900

SUBSCRIPTION_TTL, SHORTEST_SUBSCRIPTION = 3600, 60
#: A century: every such time is still valid in date arithmetic.
LONGEST_SUBSCRIPTION = 3_153_600_000
SUBSCRIBER = 1024

SIGNED_URL_LIFE = 86_400

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def check_name(name: Any) -> str:
    """Return the name of a queue. Raises Invalid."""
    if not isinstance(name, str) or len(name) > QUEUE_NAME or not _NAME.fullmatch(name):
        raise Invalid(
            f"the queue: {name!r:.100} is not a valid queue name: use 1 to {QUEUE_NAME} ASCII letters, "
            "digits, dots, underscores and dashes"
        )
    return name


POST_SIZE_KEY, TTL_KEY, DELAY_KEY = "_max_messages_post_size", "_default_message_ttl", "_default_message_delay"
#: Stoker's own extension: each consumer gets the newest message, and the message stays in the queue.
KEEP_NEWEST = "_keep_newest"
_ENCRYPT = "_enable_encrypt_messages"

_DEFAULTS: dict[str, Any] = {
    POST_SIZE_KEY: POST_SIZE,
    TTL_KEY: MESSAGE_TTL,
    DELAY_KEY: MESSAGE_DELAY,
    _ENCRYPT: False,
}


class _Options(Struct):
    """The metadata that configure the service."""

    post_size: Annotated[int, Meta(ge=1, le=POST_SIZE)] | None = field(name=POST_SIZE_KEY, default=None)
    ttl: Annotated[int, Meta(ge=SHORTEST_TTL, le=LONGEST_TTL)] | None = field(name=TTL_KEY, default=None)
    delay: Annotated[int, Meta(ge=0, le=LONGEST_DELAY)] | None = field(name=DELAY_KEY, default=None)


def add_defaults(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata with the defaults of all names that are not set."""
    return {**metadata, **{name: metadata.get(name) or default for name, default in _DEFAULTS.items()}}


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the metadata. Raises Invalid for metadata that a queue cannot have."""
    json_values.convert(metadata, _Options, "the metadata")
    if metadata.get(_ENCRYPT) not in (None, False):
        raise Invalid(f"{_ENCRYPT} must be false: Stoker does not encrypt messages")
    return dict(metadata)
