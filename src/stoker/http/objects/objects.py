"""Objects: written, read whole or in part, described anew, and deleted."""

from __future__ import annotations

import hashlib
import time

from stoker.http import errors
from stoker.http.call import Call, Reply
from stoker.http.objects import conditions, copying, headers, parts, sending
from stoker.http.objects.access import account_of
from stoker.http.objects.disposition import behind_signature
from stoker.model.errors import Unprocessable
from stoker.model.objects import Stored
from stoker.objects import writing
from stoker.objects.writing import New
from stoker.store.tx import Tx


def put(call: Call) -> Reply:
    said = headers.said(call.request)
    if version := sending.version_of(call):
        return _restore(call, version)
    if "x-copy-from" in said:
        return copying.into(call, said)
    if "content-length" not in said and "transfer-encoding" not in said:
        return errors.reply(errors.OBJECTS, 411, "LengthRequired", None)
    sending.refuse_segments(call, said)
    told = said.get("etag", "").strip('"').lower()
    if told and told != hashlib.md5(call.body, usedforsecurity=False).hexdigest():
        raise Unprocessable("the body's MD5 is not what the ETag says")
    new = New(
        account=account_of(call.path),
        container=call.path["container"],
        name=call.path["object"],
        data=call.body,
        content_type=sending.content_type(said, call.path["object"]),
        headers=headers.kept_of_object(said),
        delete_at=headers.delete_at(said, time.time()),
    )
    return sending.written(call, new, said)


def get(call: Call) -> Reply:
    with call.services.store.read() as tx:
        stored, data = writing.read(tx, *_place(call), sending.version_of(call))
    return _answer(call, stored, data)


def head(call: Call) -> Reply:
    with call.services.store.read() as tx:
        stored = writing.find(tx, *_place(call), sending.version_of(call))
    return _answer(call, stored, None)


def post(call: Call) -> Reply:
    """Metadata anew: what is not said again is gone, but for the content type."""
    said, version = headers.said(call.request), sending.version_of(call)
    sending.refuse_segments(call, said)
    kept, delete_at = headers.kept_of_object(said), headers.delete_at(said, time.time())

    def change(tx: Tx) -> Stored:
        account, container, name = _place(call)
        writing.held(tx, account, container)
        old = writing.find(tx, account, container, name, version)
        kind = sending.content_type(said, name) if said.get("content-type") else old.content_type
        port = call.services.objects.port
        writing.change(tx, port, old, headers=kept, content_type=kind, delete_at=delete_at)
        return old

    old = call.services.store.write(change)
    return Reply(202, headers={"X-Object-Version-Id": old.version} if old.version else {})


def delete(call: Call) -> Reply:
    said, version = headers.said(call.request), sending.version_of(call)
    gone = call.services.store.write(
        lambda tx: writing.delete(
            tx, *_place(call), version=version, check=lambda old: conditions.for_delete(said, old)
        )
    )
    shown = {"X-Object-Version-Id": gone.version} if gone.version else {}
    if not gone.found:
        return errors.reply(errors.OBJECTS, 404, "HTTPNotFound", None, shown)
    return Reply(204, headers=shown)


def _restore(call: Call, version: str) -> Reply:
    stored = call.services.store.write(lambda tx: writing.restore(tx, *_place(call), version))
    return Reply(201, headers={"ETag": stored.etag, "X-Object-Version-Id": version})


def _answer(call: Call, stored: Stored, data: bytes | None) -> Reply:
    """``data`` None: only what is known of it."""
    shown = headers.of_object(stored)
    if call.principal is None:
        shown = behind_signature(call.query, stored, shown)
    said = headers.said(call.request)
    if conditions.unchanged(stored, said):
        return Reply(
            304, headers=headers.wire({name: value for name, value in shown.items() if name != "Content-Type"})
        )
    if data is None:
        return Reply(200, None, headers.wire({**shown, "Content-Length": str(stored.size)}))
    wanted = conditions.ranges(stored, said)
    if wanted is None:
        return Reply(200, data, headers.wire(shown))
    if not wanted:
        whole = {"Content-Range": f"bytes */{stored.size}"}
        return errors.reply(errors.OBJECTS, 416, "RangeNotSatisfiable", None, whole)
    return parts.reply(stored, data, wanted, shown)


def _place(call: Call) -> tuple[str, str, str]:
    return account_of(call.path), call.path["container"], call.path["object"]
