"""Objects: write, read in whole or in part, change metadata, delete."""

from __future__ import annotations

import hashlib
import time

from stoker.http import errors
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


def put(request: RequestContext) -> Response:
    """Store an object, restore a version, or copy another object, as the query and the headers request."""
    said = headers.read_headers(request.raw)
    if version := uploads.version_of(request):
        return _restore(request, version)
    if "x-copy-from" in said:
        return object_copy.into(request, said)
    if "content-length" not in said and "transfer-encoding" not in said:
        return errors.reply(errors.OBJECTS, 411, "LengthRequired", None)
    uploads.refuse_segments(request, said)
    declared = said.get("etag", "").strip('"').lower()
    if declared and declared != hashlib.md5(request.body, usedforsecurity=False).hexdigest():
        raise Unprocessable("the body's MD5 is not what the ETag says")
    new = New(
        account=account_of(request.path),
        container=request.path["container"],
        name=request.path["object"],
        data=request.body,
        content_type=uploads.content_type(said, request.path["object"]),
        headers=headers.object_headers(said),
        delete_at=headers.delete_at(said, time.time()),
    )
    return uploads.store_object(request, new, said)


def get(request: RequestContext) -> Response:
    """Return an object or ranges of it. Raises EntityNotFound, PreconditionFailed or Forbidden."""
    said, version = headers.read_headers(request.raw), uploads.version_of(request)
    with request.app.store.read() as tx:
        if "range" in said:  # data that is not sent is not read either: an object may have millions of bytes
            stored = object_operations.find(tx, *_place(request), version)
            if conditions.ranges(stored, said) == []:
                return _answer(request, stored, b"")
        stored, data = object_operations.read(tx, *_place(request), version)
    check_read(stored, as_owner=request.as_owner)
    return _answer(request, stored, data)


def head(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        stored = object_operations.find(tx, *_place(request), uploads.version_of(request))
    return _answer(request, stored, None)


def post(request: RequestContext) -> Response:
    """Replace the metadata. Headers that the request omits are removed, except for the content type."""
    said, version = headers.read_headers(request.raw), uploads.version_of(request)
    uploads.refuse_segments(request, said)
    kept, delete_at = headers.object_headers(said), headers.delete_at(said, time.time())

    def change(tx: Tx) -> Stored:
        account, container, name = _place(request)
        object_operations.lock(tx, account, container, as_owner=request.as_owner)
        old = object_operations.find(tx, account, container, name, version)
        kind = uploads.content_type(said, name) if said.get("content-type") else old.content_type
        port = request.app.objects.port
        object_operations.change(tx, port, old, headers=kept, content_type=kind, delete_at=delete_at)
        return old

    old = request.app.store.write(change)
    return Response(202, headers={"X-Object-Version-Id": old.version} if old.version else {})


def delete(request: RequestContext) -> Response:
    """Delete an object or, with ``version-id``, one version of it."""
    said, version = headers.read_headers(request.raw), uploads.version_of(request)
    gone = request.app.store.write(
        lambda tx: object_operations.delete(
            tx,
            *_place(request),
            version=version,
            check=lambda old: conditions.for_delete(said, old),
            as_owner=request.as_owner,
        )
    )
    shown = {"X-Object-Version-Id": gone.version} if gone.version else {}
    if not gone.found:
        return errors.reply(errors.OBJECTS, 404, "HTTPNotFound", None, shown)
    return Response(204, headers=shown)


def _restore(request: RequestContext, version: str) -> Response:
    stored = request.app.store.write(lambda tx: object_operations.restore(tx, *_place(request), version))
    return Response(201, headers={"ETag": stored.etag, "X-Object-Version-Id": version})


def _answer(request: RequestContext, stored: Stored, data: bytes | None) -> Response:
    """Return the object, requested ranges, or 304. ``data`` None: only the headers."""
    shown = headers.of_object(stored)
    if request.principal is None:
        shown = for_signed_url(request.query, stored, shown)
    shown = force_attachment(stored, shown)
    said = headers.read_headers(request.raw)
    if conditions.is_unchanged(stored, said):
        return Response(
            304, headers=headers.wire({name: value for name, value in shown.items() if name != "Content-Type"})
        )
    if data is None:
        return Response(200, None, headers.wire({**shown, "Content-Length": str(stored.size)}))
    wanted = conditions.ranges(stored, said)
    if wanted is None:
        return Response(200, data, headers.wire(shown))
    if not wanted:
        whole = {"Content-Range": f"bytes */{stored.size}"}
        return errors.reply(errors.OBJECTS, 416, "RangeNotSatisfiable", None, whole)
    return parts.reply(stored, data, wanted, shown)


def _place(request: RequestContext) -> tuple[str, str, str]:
    return account_of(request.path), request.path["container"], request.path["object"]
