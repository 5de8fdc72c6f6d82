"""
Queue metadata.

Names that begin with an underscore configure the service. As in Zaqar, names that are not set are shown with their
defaults and not stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stoker.messaging import checks, limits, retry_policy
from stoker.model.errors import Conflict, Invalid

POST_SIZE, TTL, DELAY = "_max_messages_post_size", "_default_message_ttl", "_default_message_delay"
DEAD_LETTER_QUEUE, DEAD_LETTER_TTL = "_dead_letter_queue", "_dead_letter_queue_messages_ttl"
#: Stoker's own extension: each consumer gets the newest message, and the message stays in the queue.
KEEP_NEWEST = "_keep_newest"
MOST_CLAIMS, ENCRYPT, RETRIES = "_max_claim_count", "_enable_encrypt_messages", "_retry_policy"

_DEFAULTS: dict[str, Any] = {
    POST_SIZE: limits.POST_SIZE,
    TTL: limits.MESSAGE_TTL,
    DELAY: limits.MESSAGE_DELAY,
    DEAD_LETTER_QUEUE: None,
    DEAD_LETTER_TTL: None,
    MOST_CLAIMS: None,
    ENCRYPT: False,
}
_BOUNDS = {
    POST_SIZE: (1, limits.POST_SIZE),
    TTL: (limits.SHORTEST_TTL, limits.LONGEST_TTL),
    DELAY: (0, limits.LONGEST_DELAY),
    DEAD_LETTER_TTL: (limits.SHORTEST_TTL, limits.LONGEST_TTL),
    MOST_CLAIMS: (0, 2**31 - 1),
}
_OPERATIONS = ("add", "remove", "replace")


def visible_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with defaults for all names that are not set."""
    return {**metadata, **{name: metadata.get(name) or default for name, default in _DEFAULTS.items()}}


def check_metadata(metadata: Any) -> dict[str, Any]:
    """Raises Invalid for metadata that a queue cannot have."""
    entries = checks.mapping(metadata, "a queue's metadata")
    for name, (least, most) in _BOUNDS.items():
        if entries.get(name) is not None:
            checks.whole(entries[name], name, least, most)
    if entries.get(DEAD_LETTER_QUEUE) is not None:
        checks.queue_name(entries[DEAD_LETTER_QUEUE], DEAD_LETTER_QUEUE)
    if entries.get(ENCRYPT) not in (None, False):
        raise Invalid(f"{ENCRYPT} must be false: Stoker does not encrypt messages")
    retry_policy.check(entries.get(RETRIES), RETRIES)
    return entries


def apply_patch(metadata: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    """
    Apply a JSON patch with paths like ``/metadata/name``. Returns the new metadata.

    Raises Invalid for an invalid patch or an invalid result, and Conflict if a name to replace or remove does not
    exist.
    """
    if not isinstance(changes, list):
        raise Invalid("the request's body must be a JSON array of operations")
    result = dict(metadata)
    for change in changes:
        operation, name = _operation(change), _name(change)
        exists = name in result or name in _DEFAULTS
        if operation != "add" and not exists:
            raise Conflict(f"the queue's metadata has no {name!r:.100} to {operation}")
        if operation == "remove":
            result.pop(name, None)
        elif "value" not in change:
            raise Invalid(f"the operation {operation!r} on {name!r:.100} needs a value")
        else:
            result[name] = change["value"]
    return check_metadata(result)


def path_of(name: str) -> str:
    """The JSON patch path of a metadata entry."""
    return "/metadata/" + name.replace("~", "~0").replace("/", "~1")


def _operation(change: Any) -> str:
    operation = checks.mapping(change, "an operation").get("op")
    if operation not in _OPERATIONS:
        raise Invalid(f"op must be one of {', '.join(_OPERATIONS)}, not {operation!r:.100}")
    return str(operation)


def _name(change: Mapping[str, Any]) -> str:
    path = change.get("path")
    parts = path.split("/") if isinstance(path, str) else []
    if len(parts) != 3 or parts[:2] != ["", "metadata"] or not parts[2]:
        raise Invalid(f"path must be like /metadata/name, not {path!r:.100}")
    if re.search("~(?![01])", parts[2]):
        raise Invalid(f"path {path!r:.100} contains a ~ that is part of neither ~0 nor ~1")
    return parts[2].replace("~1", "/").replace("~0", "~")
