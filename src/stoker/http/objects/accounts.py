"""Accounts: every project has one, even if it has no containers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from stoker.http.contracts import Success, operation
from stoker.http.fields import Query
from stoker.http.objects import bulk, headers, listings
from stoker.http.objects.access import account_of
from stoker.http.objects.listings import ContainerEntry, ListingQuery
from stoker.http.request_context import RequestContext, Response
from stoker.model.objects import timestamp
from stoker.objects import container_operations
from stoker.store import accounts, containers
from stoker.store.tx import Tx


class BulkQuery(Query):
    bulk_delete: Annotated[str | None, Meta(description="The body has one percent-encoded path per line")] = field(
        name="bulk-delete", default=None
    )


_TOTALS = ("X-Account-Container-Count", "X-Account-Object-Count", "X-Account-Bytes-Used")


@operation(204, headers=_TOTALS)
def head(request: RequestContext) -> Response:
    """Return the totals and the metadata of an account, in headers."""
    with request.app.store.read() as tx:
        return Response(204, headers=_headers(request, tx))


@operation(
    200,
    list[ContainerEntry],
    headers=_TOTALS,
    alternatives=("application/xml", "text/plain"),
    also={204: Success()},
    errors=(406, 412),
)
def index(request: RequestContext, query: ListingQuery) -> Response:
    """List the containers of an account."""
    account, page = account_of(request.path), query.to_page()
    with request.app.store.read() as tx:
        entries = containers.page(tx, account, page)
        totals = _headers(request, tx)
    return listings.reply(request, query, request.path["account"], "account", entries, totals)


@operation(
    204, also={200: Success(body=bulk.BulkReport)}, errors=(413,), request_media_type="text/plain", query=BulkQuery
)
def post(request: RequestContext) -> Response:
    """
    Change the metadata of an account, or with `bulk-delete` delete the containers and objects that the body names.
    """
    if "bulk-delete" in request.query:
        return bulk.delete(request)
    account, changes = account_of(request.path), headers.read_headers(request.raw)
    request.app.store.write(lambda tx: container_operations.change_account(tx, account, changes))
    return Response(204)


def _headers(request: RequestContext, tx: Tx) -> dict[str, str]:
    account = container_operations.account(tx, account_of(request.path))
    totals = accounts.totals(tx, account.id)
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
