"""Objects: write, read in whole or in part, change metadata, delete."""

from __future__ import annotations

import hashlib
from typing import Annotated

from msgspec import Meta, field

from stoker.http import errors
from stoker.http.contracts import Success, operation
from stoker.http.fields import Query
from stoker.http.objects import conditions, headers, object_copy, parts, uploads
from stoker.http.objects.access import account_of
from stoker.http.objects.disposition import for_signed_url, force_attachment
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Unprocessable
from stoker.model.objects import Stored
from stoker.model.ownership import check_read
from stoker.objects import object_operations
from stoker.objects.object_operations import New
from stoker.store.tx import Tx


class ObjectQuery(Query):
    version_id: Annotated[str | None, Meta(description="A version of the object; by default the current one")] = field(
        name="version-id", default=None
    )
    filename: Annotated[str | None, Meta(description="The name with which browsers save the object")] = None
    inline: Annotated[str | None, Meta(description="Browsers display the object")] = None
    temp_url_sig: str | None = None
    temp_url_expires: str | None = None
    temp_url_prefix: str | None = None
    temp_url_ip_range: str | None = None


_ANY_TYPE = "*/*"


@operation(
    201,
    headers=("ETag",),
    errors=(409, 411, 412, 413, 422),
    request_media_type="application/octet-stream",
    query=ObjectQuery,
)
def put(request: RequestContext) -> Response:
    """Store an object, restore a version, or copy another object, as the query and the headers request."""
    fields = headers.read_headers(request.raw)
    if version := uploads.version_of(request):
        return _restore(request, version)
    if "x-copy-from" in fields:
        return object_copy.into(request, fields)
    if "content-length" not in fields and "transfer-encoding" not in fields:
        return errors.reply(errors.OBJECTS, 411, "LengthRequired", None)
    uploads.refuse_segments(request, fields)
    declared = fields.get("etag", "").strip('"').lower()
    if declared and declared != hashlib.md5(request.body, usedforsecurity=False).hexdigest():
        raise Unprocessable("the body's MD5 differs from the ETag")
    new = New(
        account=account_of(request.path),
        container=request.path["container"],
        name=request.path["object"],
        data=request.body,
        content_type=uploads.content_type(fields, request.path["object"]),
        headers=headers.object_headers(fields),
        delete_at=headers.delete_at(fields, request.app.store.clock.now().timestamp()),
    )
    return uploads.store_object(request, new, fields)


@operation(
    200,
    bytes,
    headers=("ETag",),
    media_type=_ANY_TYPE,
    also={206: Success(body=bytes, headers=("ETag",), media_type=_ANY_TYPE), 304: Success()},
    errors=(412, 416),
    query=ObjectQuery,
)
def get(request: RequestContext) -> Response:
    """Return an object or ranges of it. Raises EntityNotFound, PreconditionFailed or Forbidden."""
    fields, version = headers.read_headers(request.raw), uploads.version_of(request)
    with request.app.store.read() as tx:
        if "range" in fields:  # data that is not sent is not read either: an object may have millions of bytes
            stored = object_operations.find(tx, *_place(request), version)
            if conditions.ranges(stored, fields) == []:
                return _answer(request, stored, b"")
        stored, data = object_operations.read(tx, *_place(request), version)
    check_read(stored, as_owner=request.as_owner)
    return _answer(request, stored, data)


@operation(200, headers=("ETag",), also={304: Success()}, errors=(412,), query=ObjectQuery)
def head(request: RequestContext) -> Response:
    """Return the headers of an object."""
    with request.app.store.read() as tx:
        stored = object_operations.find(tx, *_place(request), uploads.version_of(request))
    return _answer(request, stored, None)


@operation(202, query=ObjectQuery)
def post(request: RequestContext) -> Response:
    """Replace the metadata. Headers that the request omits are removed, except for the content type."""
    fields, version = headers.read_headers(request.raw), uploads.version_of(request)
    uploads.refuse_segments(request, fields)
    stored = headers.object_headers(fields)
    delete_at = headers.delete_at(fields, request.app.store.clock.now().timestamp())

    def change(tx: Tx) -> Stored:
        account, container, name = _place(request)
        object_operations.lock(tx, account, container, as_owner=request.as_owner)
        old = object_operations.find(tx, account, container, name, version)
        kind = uploads.content_type(fields, name) if fields.get("content-type") else old.content_type
        port = request.app.objects.port
        object_operations.change(tx, port, old, headers=stored, content_type=kind, delete_at=delete_at)
        return old

    old = request.app.store.write(change)
    return Response(202, headers={"X-Object-Version-Id": old.version} if old.version else {})


@operation(204, errors=(412,), query=ObjectQuery)
def delete(request: RequestContext) -> Response:
    """Delete an object or, with `version-id`, one version of it."""
    fields, version = headers.read_headers(request.raw), uploads.version_of(request)
    deleted = request.app.store.write(
        lambda tx: object_operations.delete(
            tx,
            *_place(request),
            version=version,
            check=lambda old: conditions.for_delete(fields, old),
            as_owner=request.as_owner,
        )
    )
    reply_headers = {"X-Object-Version-Id": deleted.version} if deleted.version else {}
    if not deleted.existed:
        return errors.reply(errors.OBJECTS, 404, "HTTPNotFound", None, reply_headers)
    return Response(204, headers=reply_headers)


def _restore(request: RequestContext, version: str) -> Response:
    stored = request.app.store.write(lambda tx: object_operations.restore(tx, *_place(request), version))
    return Response(201, headers={"ETag": stored.etag, "X-Object-Version-Id": version})


def _answer(request: RequestContext, stored: Stored, data: bytes | None) -> Response:
    """Return the object, requested ranges, or 304. ``data`` None: only the headers."""
    reply_headers = headers.of_object(stored)
    if request.principal is None:
        reply_headers = for_signed_url(request.query, stored, reply_headers)
    reply_headers = force_attachment(stored, reply_headers)
    fields = headers.read_headers(request.raw)
    if conditions.is_unchanged(stored, fields):
        return Response(
            304, headers=headers.wire({name: value for name, value in reply_headers.items() if name != "Content-Type"})
        )
    if data is None:
        return Response(200, None, headers.wire({**reply_headers, "Content-Length": str(stored.size)}))
    ranges = conditions.ranges(stored, fields)
    if ranges is None:
        return Response(200, data, headers.wire(reply_headers))
    if not ranges:
        whole = {"Content-Range": f"bytes */{stored.size}"}
        return errors.reply(errors.OBJECTS, 416, "RangeNotSatisfiable", None, whole)
    return parts.reply(stored, data, ranges, reply_headers)


def _place(request: RequestContext) -> tuple[str, str, str]:
    return account_of(request.path), request.path["container"], request.path["object"]
