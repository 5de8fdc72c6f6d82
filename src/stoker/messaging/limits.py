"""Limits of the messaging service: Zaqar's defaults. Times are seconds, sizes bytes."""

from __future__ import annotations

QUEUE_NAME = 64
METADATA_SIZE = 64 * 1024
#: Default and maximum number of queues, messages or subscriptions in a list, and of messages in a claim or a pop.
PAGE, LONGEST_PAGE = 10, 20

POST_SIZE = 256 * 1024
#: Zaqar limits only the size. This is the number of ids that a request for the answer's Location may contain.
MESSAGES_A_POST = 20
MESSAGE_TTL, SHORTEST_TTL, LONGEST_TTL = 3600, 60, 1_209_600
MESSAGE_DELAY, LONGEST_DELAY = 0, 900

CLAIM_TTL, CLAIM_GRACE, SHORTEST_CLAIM, LONGEST_CLAIM = 300, 60, 60, 43_200

SUBSCRIPTION_TTL, SHORTEST_SUBSCRIPTION = 3600, 60
#: A century: every such time is still valid in date arithmetic.
LONGEST_SUBSCRIPTION = 3_153_600_000
SUBSCRIBER = 1024

SIGNED_URL_LIFE = 86_400
