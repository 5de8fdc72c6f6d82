"""Copies of objects within an account, made by the server."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, quote, unquote

from stoker.http.objects import headers, uploads
from stoker.http.objects.access import account_of
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Invalid, PreconditionFailed
from stoker.model.ownership import check_read
from stoker.objects import limits, metadata, object_operations
from stoker.objects.object_operations import New

_TRUE = ("true", "1", "yes", "on")


def into(request: RequestContext, fields: Mapping[str, str]) -> Response:
    """Handle PUT with the header X-Copy-From."""
    if request.body:
        raise Invalid("Copy requests require a zero byte body")
    path, _, query = fields["x-copy-from"].partition("?")
    version = parse_qs(query).get("version-id", [None])[0]
    return _copy(
        request, fields, _place(path, "X-Copy-From"), (request.path["container"], request.path["object"]), version
    )


def out_of(request: RequestContext) -> Response:
    """Handle COPY with the header Destination."""
    fields = headers.read_headers(request.raw)
    if "destination" not in fields:
        raise PreconditionFailed("Destination header required")
    here = (request.path["container"], request.path["object"])
    return _copy(request, fields, here, _place(fields["destination"], "Destination"), uploads.version_of(request))


def _copy(
    request: RequestContext,
    fields: Mapping[str, str],
    source: tuple[str, str],
    target: tuple[str, str],
    version: str | None,
) -> Response:
    account = account_of(request.path)
    for name in ("destination-account", "x-copy-from-account"):
        if fields.get(name, request.path["account"]) != request.path["account"]:
            raise Invalid(f"copies between accounts are not supported; {name} cannot be {fields[name]!r:.100}")
    uploads.refuse_segments(request, fields)
    stored = headers.object_headers(fields)
    with request.app.store.read() as tx:
        old, data = object_operations.read(tx, account, *source, version)
    check_read(old, as_owner=request.as_owner)
    if fields.get("x-fresh-metadata", "").lower() not in _TRUE:
        stored = {**old.headers, **stored}
        limits.metadata(stored, metadata.OBJECT)
    has_content_type = bool(fields.get("content-type"))
    at = headers.delete_at(fields, request.app.store.clock.now().timestamp())
    new = New(
        account=account,
        container=target[0],
        name=target[1],
        data=data,
        content_type=uploads.content_type(fields, target[1]) if has_content_type else old.content_type,
        headers=stored,
        delete_at=old.delete_at if at is None else at,
    )
    reply_headers = {
        "X-Copied-From": quote("/".join(source)),
        "X-Copied-From-Account": request.path["account"],
        "X-Copied-From-Last-Modified": headers.http_time(old.modified_at),
    }
    if old.version is not None:
        reply_headers["X-Copied-From-Version-Id"] = old.version
    # The conditions of a PUT apply to the target. COPY supports no conditions.
    conditional = fields if request.raw.method == "PUT" else {}
    return uploads.store_object(request, new, conditional, reply_headers)


def _place(path: str, header: str) -> tuple[str, str]:
    """Split a path into container and object. Raises PreconditionFailed."""
    try:
        container, _, name = unquote(path, errors="strict").removeprefix("/").partition("/")
    except UnicodeDecodeError:
        raise PreconditionFailed(f"{header} must be percent-encoded UTF-8") from None
    if not container or not name or "\0" in container + name:
        raise PreconditionFailed(f"{header} must be of the form <container name>/<object name>")
    return container, name
