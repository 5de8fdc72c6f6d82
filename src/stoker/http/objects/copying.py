"""An object copied to another name of the same account, inside the server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import parse_qs, quote, unquote

from stoker.http.call import Call, Reply
from stoker.http.objects import headers, sending
from stoker.http.objects.access import account_of
from stoker.model.errors import Invalid, PreconditionFailed
from stoker.objects import limits, metadata, writing
from stoker.objects.writing import New

_TRUE = ("true", "1", "yes", "on")


def into(call: Call, said: Mapping[str, str]) -> Reply:
    """PUT with X-Copy-From."""
    if call.body:
        raise Invalid("Copy requests require a zero byte body")
    path, _, query = said["x-copy-from"].partition("?")
    version = parse_qs(query).get("version-id", [None])[0]
    return _copy(call, said, _place(path, "X-Copy-From"), (call.path["container"], call.path["object"]), version)


def out_of(call: Call) -> Reply:
    """COPY with Destination."""
    said = headers.said(call.request)
    if "destination" not in said:
        raise PreconditionFailed("Destination header required")
    here = (call.path["container"], call.path["object"])
    return _copy(call, said, here, _place(said["destination"], "Destination"), sending.version_of(call))


def _copy(
    call: Call, said: Mapping[str, str], source: tuple[str, str], target: tuple[str, str], version: str | None
) -> Reply:
    account = account_of(call.path)
    for name in ("destination-account", "x-copy-from-account"):
        if said.get(name, call.path["account"]) != call.path["account"]:
            raise Invalid(f"copies stay in their account; {name} cannot be {said[name]!r:.100}")
    sending.refuse_segments(call, said)
    kept = headers.kept_of_object(said)
    with call.services.store.read() as tx:
        old, data = writing.read(tx, account, *source, version)
    if said.get("x-fresh-metadata", "").lower() not in _TRUE:
        kept = {**old.headers, **kept}
        limits.metadata(kept, metadata.OBJECT)
    told = bool(said.get("content-type"))
    at = headers.delete_at(said, time.time())
    new = New(
        account=account,
        container=target[0],
        name=target[1],
        data=data,
        content_type=sending.content_type(said, target[1]) if told else old.content_type,
        headers=kept,
        delete_at=old.delete_at if at is None else at,
    )
    shown = {
        "X-Copied-From": quote("/".join(source)),
        "X-Copied-From-Account": call.path["account"],
        "X-Copied-From-Last-Modified": headers.http_time(old.modified_at),
    }
    if old.version is not None:
        shown["X-Copied-From-Version-Id"] = old.version
    # What is asked to be so is asked of the target by a PUT, and of nothing by a COPY.
    conditional = said if call.request.method == "PUT" else {}
    return sending.written(call, new, conditional, shown)


def _place(said: str, header: str) -> tuple[str, str]:
    """Container and object. Raises PreconditionFailed."""
    try:
        container, _, name = unquote(said, errors="strict").removeprefix("/").partition("/")
    except UnicodeDecodeError:
        raise PreconditionFailed(f"{header} must be percent-encoded UTF-8") from None
    if not container or not name or "\0" in container + name:
        raise PreconditionFailed(f"{header} must be of the form <container name>/<object name>")
    return container, name
