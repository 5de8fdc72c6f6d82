"""Accounts and containers. Every project has an account, even if it has no containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.http.contracts import operation
from stoker.http.objects import headers
from stoker.http.objects.access import account_of
from stoker.http.request import RequestContext, Response
from stoker.model.embedded import Container, Entry, Page, timestamp
from stoker.model.errors import Invalid, PreconditionFailed
from stoker.objects import limits, operations
from stoker.store import objects
from stoker.store.tx import Tx

#: The name of Swift's first storage policy; Stoker has only one policy.
_POLICY = "Policy-0"
#: Headers of features that Stoker does not have, and what to do instead.
_UNSUPPORTED = {
    **dict.fromkeys(("x-container-read", "x-container-write"), "access lists of containers: use signed URLs"),
    **dict.fromkeys(
        ("x-versions-enabled", "x-versions-location", "x-history-location"),
        "versions of objects: store each version with a name of its own",
    ),
}
#: Members of the entries of listings, with the names of the fields of an entry.
_CONTAINER_NAMES = {"count": "objects", "bytes": "size"}
_OBJECT_NAMES = {"hash": "etag", "bytes": "size", "content_type": "content_type"}


@operation(204)
def head_account(request: RequestContext, tx: Tx) -> Response:
    """Return the totals and the metadata of an account, in headers."""
    return Response(204, headers=_account_headers(request, tx))


@operation(200)
def list_account(request: RequestContext, tx: Tx) -> Response:
    entries = objects.list_containers(tx, account_of(request.path), _page_of(request))
    return _reply(request, entries, _CONTAINER_NAMES, _account_headers(request, tx))


@operation(204)
def post_account(request: RequestContext, tx: Tx) -> None:
    operations.change_account(tx, account_of(request.path), headers.read_headers(request.raw))


@operation(201)
def put(request: RequestContext, tx: Tx) -> Response:
    """Create a container (201), or update the metadata of an existing one (202)."""
    is_new = operations.create_container(tx, *_place(request), _read_headers(request))
    return Response(201 if is_new else 202)


@operation(204)
def post(request: RequestContext, tx: Tx) -> None:
    operations.change_container(tx, *_place(request), _read_headers(request))


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a container. Raises EntityNotFound, or Conflict if the container is not empty."""
    operations.delete_container(tx, *_place(request))


@operation(204)
def head(request: RequestContext, tx: Tx) -> Response:
    """Return the totals and the metadata of a container, in headers."""
    return Response(204, headers=_headers(request, operations.container(tx, *_place(request))))


@operation(200)
def index(request: RequestContext, tx: Tx) -> Response:
    page, container = _page_of(request), operations.container(tx, *_place(request))
    entries = objects.list_objects(tx, container.account, container.name, page)
    return _reply(request, entries, _OBJECT_NAMES, _headers(request, container))


def _place(request: RequestContext) -> tuple[str, str]:
    return account_of(request.path), request.path["container"]


def _read_headers(request: RequestContext) -> dict[str, str]:
    fields = headers.read_headers(request.raw)
    for name, feature in _UNSUPPORTED.items():
        if fields.get(name):
            raise Invalid(f"the header {name} is not supported. Stoker has no {feature}")
    return fields


def _headers(request: RequestContext, container: Container) -> dict[str, str]:
    return headers.wire(
        {
            "X-Container-Object-Count": str(container.objects),
            "X-Container-Bytes-Used": str(container.bytes),
            "X-Timestamp": timestamp(container.created_at),
            "Last-Modified": headers.http_time(container.created_at),
            "X-Storage-Policy": _POLICY,
            "Accept-Ranges": "bytes",
            "Content-Type": "text/plain; charset=utf-8",
            **headers.owners(request, container.headers),
        }
    )


def _account_headers(request: RequestContext, tx: Tx) -> dict[str, str]:
    account = operations.account(tx, account_of(request.path))
    totals = objects.totals(tx, account.id)
    return headers.wire(
        {
            "X-Account-Container-Count": str(totals.containers),
            "X-Account-Object-Count": str(totals.objects),
            "X-Account-Bytes-Used": str(totals.bytes),
            "X-Timestamp": timestamp(account.created_at),
            "Content-Type": "text/plain; charset=utf-8",
            **headers.owners(request, account.headers),
        }
    )


def _page_of(request: RequestContext) -> Page:
    """Return the requested page. A limit that is no number is ignored. Raises PreconditionFailed for a large limit."""
    text, limit = request.query.get("limit", ""), limits.LISTING
    if text.isascii() and text.isdigit():
        limit = int(text) if len(text) < 10 else limits.LISTING + 1
        if limit > limits.LISTING:
            raise PreconditionFailed(f"Maximum limit is {limits.LISTING}")
    return Page(limit=limit, **{name: request.query.get(name, "") for name in ("marker", "prefix", "delimiter")})


def _reply(
    request: RequestContext, entries: Sequence[Entry], names: Mapping[str, str], fields: dict[str, str]
) -> Response:
    """
    Return the listing, in JSON if the query's ``format`` asks for it, or without one the header Accept.

    ``names`` are the members of an entry in JSON, beside its name and time, with the names of the entry's fields.
    """
    form = request.query.get("format", request.raw.headers.get("accept", "")).lower()
    if "json" in form:
        content_type = {**fields, "Content-Type": "application/json; charset=utf-8"}
        return Response(200, [_serialize_entry(entry, names) for entry in entries], content_type)
    if not entries:
        return Response(204, headers=fields)
    return Response(200, "".join(f"{entry.name}\n" for entry in entries).encode(), fields)


def _serialize_entry(entry: Entry, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry of a listing; one for several names is their common prefix."""
    if entry.folder:
        return {"subdir": entry.name}
    members = {member: getattr(entry, field) for member, field in names.items()}
    return {"name": entry.name, **members, "last_modified": headers.iso_time(entry.modified_at)}
