"""Accounts: every project has one, even if it has no containers."""

from __future__ import annotations

from stoker.http.objects import bulk, headers, listings
from stoker.http.objects.access import account_of
from stoker.http.request_context import RequestContext, Response
from stoker.model.objects import timestamp
from stoker.objects import container_operations
from stoker.store import accounts, containers
from stoker.store.tx import Tx


def head(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        return Response(204, headers=_headers(request, tx))


def index(request: RequestContext) -> Response:
    account = account_of(request.path)
    page = listings.parse_query(request)
    with request.app.store.read() as tx:
        entries = containers.page(tx, account, page)
        totals = _headers(request, tx)
    return listings.reply(request, request.path["account"], "account", entries, totals)


def post(request: RequestContext) -> Response:
    """
    Change the metadata of an account, or with ``bulk-delete`` delete the containers and objects that the body names.
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
