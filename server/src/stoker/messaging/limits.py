"""Limits of the messaging service, which are Zaqar's defaults, and checks of values. Times are seconds, sizes bytes."""

from __future__ import annotations

import re
from typing import Any

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
