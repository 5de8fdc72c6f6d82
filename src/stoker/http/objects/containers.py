"""Containers: create, change, list, and delete when empty."""

from __future__ import annotations

from stoker.http.contracts import Success, operation
from stoker.http.objects import headers, listings
from stoker.http.objects.access import account_of
from stoker.http.objects.listings import ListingQuery, ObjectEntry
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Invalid
from stoker.model.objects import Container, timestamp
from stoker.objects import container_operations
from stoker.store import objects
from stoker.store.tx import Tx

#: The name of Swift's first storage policy; Stoker has only one policy.
_POLICY = "Policy-0"
_LISTS = ("x-container-read", "x-container-write")


_TOTALS = ("X-Container-Object-Count", "X-Container-Bytes-Used")


@operation(201, also={202: Success()})
def put(request: RequestContext) -> Response:
    """Create a container (201), or update the metadata of an existing one (202)."""
    account, name, changes = account_of(request.path), request.path["container"], _read_headers(request)
    is_new = request.app.store.write(lambda tx: container_operations.create_container(tx, account, name, changes))
    return Response(201 if is_new else 202)


@operation(204)
def post(request: RequestContext) -> Response:
    """Change the metadata of a container."""
    account, name, changes = account_of(request.path), request.path["container"], _read_headers(request)
    request.app.store.write(lambda tx: container_operations.change_container(tx, account, name, changes))
    return Response(204)


@operation(204, errors=(409,))
def delete(request: RequestContext) -> Response:
    """Delete a container. Raises EntityNotFound, or Conflict if the container is not empty."""
    account, name = account_of(request.path), request.path["container"]
    request.app.store.write(lambda tx: container_operations.delete_container(tx, account, name))
    return Response(204)


@operation(204, headers=_TOTALS)
def head(request: RequestContext) -> Response:
    """Return the totals and the metadata of a container, in headers."""
    with request.app.store.read() as tx:
        return Response(204, headers=_headers(request, _find(request, tx)))


@operation(
    200,
    list[ObjectEntry],
    headers=_TOTALS,
    alternatives=("application/xml", "text/plain"),
    also={204: Success()},
    errors=(406, 412),
)
def index(request: RequestContext, query: ListingQuery) -> Response:
    """List the objects of a container, or with `versions` all their versions."""
    account, name = account_of(request.path), request.path["container"]
    page, kind = query.to_page(), "container" if query.versions is None else "versions"
    if kind == "versions" and (page.delimiter or page.path is not None):
        raise Invalid("a list of versions supports neither delimiter nor path: use prefix")
    with request.app.store.read() as tx:
        container_headers = _headers(request, _find(request, tx))
        listed = objects.versions if kind == "versions" else objects.page
        entries = listed(tx, account, name, page)
    return listings.reply(request, query, name, kind, entries, container_headers)


def _find(request: RequestContext, tx: Tx) -> Container:
    return container_operations.container(tx, account_of(request.path), request.path["container"])


def _read_headers(request: RequestContext) -> dict[str, str]:
    fields = headers.read_headers(request.raw)
    for name in _LISTS:
        if fields.get(name):
            raise Invalid(f"access lists of containers ({name}) are not supported: use signed URLs")
    return fields


def _headers(request: RequestContext, container: Container) -> dict[str, str]:
    stored = headers.owners(request, container.headers)
    if "x-versions-enabled" in stored:
        stored["x-versions-enabled"] = stored["x-versions-enabled"].title()
    return headers.wire(
        {
            "X-Container-Object-Count": str(container.objects),
            "X-Container-Bytes-Used": str(container.bytes),
            "X-Timestamp": timestamp(container.created_at),
            "Last-Modified": headers.http_time(container.created_at),
            "X-Storage-Policy": _POLICY,
            "Accept-Ranges": "bytes",
            "Content-Type": "text/plain; charset=utf-8",
            **stored,
        }
    )
