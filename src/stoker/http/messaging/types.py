"""Types and serializers that several modules of the messaging API share. Zaqar's clients know these forms."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from stoker.http.fields import Answer, Count, Decoded, Id, Query, fill
from stoker.messaging import limits
from stoker.model import messaging as model
from stoker.model.errors import Invalid

_TRUE = frozenset(("true", "yes", "on", "y", "t", "1"))
_FALSE = frozenset(("", "false", "no", "off", "n", "f", "0"))


def _word_flag(value: str) -> bool:
    word = value.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(f"must be true or false, not {value!r:.100}")
    return word in _TRUE


def _page_size(value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.removeprefix("-").isdecimal() and len(value) <= 20):
        raise ValueError(f"must be a whole number, not {value!r:.100}")
    if not 1 <= int(value) <= limits.LONGEST_PAGE:
        raise ValueError(f"must be at least 1 and at most {limits.LONGEST_PAGE}, not {value}")
    return int(value)


if TYPE_CHECKING:
    WordFlag = bool
    PageSize = int
else:
    #: A boolean in the words that Zaqar accepts; an empty value is false.
    WordFlag = Decoded("WordFlag", (), {"parse": staticmethod(_word_flag), "schema": {"type": "boolean"}})
    #: A number of entries; None for an empty value.
    PageSize = Decoded(
        "PageSize",
        (),
        {
            "parse": staticmethod(_page_size),
            "schema": {"type": "integer", "minimum": 1, "maximum": limits.LONGEST_PAGE},
        },
    )

#: Ids, of which each parameter may contain several, separated by commas.
Ids = Annotated[tuple[str, ...], Meta(description=f"Ids, separated by commas: at most {limits.LONGEST_PAGE}")]


class PageQuery(Query):
    limit: Annotated[PageSize | None, Meta(description=f"Maximum entries of the page: by default {limits.PAGE}")] = None
    marker: str | None = None


class PageLink(Answer):
    rel: str
    href: str


class QueueMessage(Answer):
    id: Id
    href: str
    ttl: Count
    age: Count
    body: Any
    checksum: str


class MessageList(Answer):
    messages: list[QueueMessage]


def split_ids(values: tuple[str, ...], name: str) -> list[str] | None:
    """Return the ids, at most as many as a page has; None if there are none. Raises Invalid."""
    ids = [id for value in values for id in value.split(",") if id]
    if len(ids) > limits.LONGEST_PAGE:
        raise Invalid(f"{name} must be at most {limits.LONGEST_PAGE}, not {len(ids)}")
    return list(dict.fromkeys(ids)) or None


def serialize_message(message: model.Message, base: str, now: datetime) -> QueueMessage:
    """Serialize a message. ``base`` is the queue's path."""
    claim = f"?claim_id={message.claim_id}" if message.claim_id else ""
    href = f"{base}/messages/{message.id}{claim}"
    return fill(QueueMessage, message, href=href, age=age(message, now), body=body_of(message))


def serialize_messages(messages: Iterable[model.Message], base: str, now: datetime) -> list[QueueMessage]:
    return [serialize_message(message, base, now) for message in messages]


def age(message: model.Message, now: datetime) -> int:
    """Return the age of the message in seconds."""
    return max(0, int((now - message.created_at).total_seconds()))


def body_of(message: model.Message) -> msgspec.Raw:
    """Return the stored JSON text without decoding it."""
    return msgspec.Raw(message.body.encode())
