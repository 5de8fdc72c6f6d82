"""/messaging/v2/queues/{queue}/share: signed URLs that give access to a queue without a token."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Id, fill
from stoker.http.messaging import queue_params
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import limits, signed_urls
from stoker.model.errors import Invalid

Path = Literal["messages", "claims", "subscriptions", "stats"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]


class Share(Body, forbid_unknown_fields=True):
    paths: list[Path] | None = None
    methods: list[Method] | None = None
    expires: Annotated[str | None, Meta(description="A time such as 2030-01-31T23:59:59; by default in a day")] = None


class SignedQueueUrl(Answer):
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    project: Id
    expires: str
    signature: str


@operation(200, SignedQueueUrl)
def create(request: RequestContext, body: Share) -> Response:
    """Return a signed URL for paths and methods of the queue, by default for GET of its messages."""
    paths = list(dict.fromkeys(body.paths or ("messages",)))
    methods = list(dict.fromkeys(body.methods or ("GET",)))
    expires, base = _expires(body.expires, request.app.store.clock.now()), queue_params.base(request)
    with request.app.store.read() as tx:
        queue_params.queue(request, tx)  # raises WriteRefused for a queue for which a signed URL would be useless
    signed = request.app.signed_urls.sign(request.project, [f"{base}/{path}" for path in paths], methods, expires)
    return Response(200, fill(SignedQueueUrl, signed))


def _expires(text: str | None, now: datetime) -> datetime:
    if text is None:
        return now + timedelta(seconds=limits.SIGNED_URL_LIFE)
    expires = signed_urls.moment(text)
    if expires <= now:
        raise Invalid(f"expires must be in the future, not {text!r:.100}")
    return expires
