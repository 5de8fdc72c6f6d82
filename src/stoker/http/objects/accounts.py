"""Accounts: there is one for each project, whether anything was ever put into it or not."""

from __future__ import annotations

from stoker.http.call import Call, Reply
from stoker.http.objects import bulk, headers, listings
from stoker.http.objects.access import account_of
from stoker.model.objects import timestamp
from stoker.objects import holding
from stoker.store import accounts, containers
from stoker.store.tx import Tx


def head(call: Call) -> Reply:
    with call.services.store.read() as tx:
        return Reply(204, headers=_headers(call, tx))


def index(call: Call) -> Reply:
    account = account_of(call.path)
    page = listings.asked(call)
    with call.services.store.read() as tx:
        found = containers.page(tx, account, page)
        said = _headers(call, tx)
    return listings.reply(call, call.path["account"], "account", found, said)


def post(call: Call) -> Reply:
    if "bulk-delete" in call.query:
        return bulk.delete(call)
    account, said = account_of(call.path), headers.said(call.request)
    call.services.store.write(lambda tx: holding.change_account(tx, account, said))
    return Reply(204)


def _headers(call: Call, tx: Tx) -> dict[str, str]:
    account = holding.account(tx, account_of(call.path))
    totals = accounts.totals(tx, account.id)
    return headers.wire(
        {
            "X-Account-Container-Count": str(totals.containers),
            "X-Account-Object-Count": str(totals.objects),
            "X-Account-Bytes-Used": str(totals.bytes),
            "X-Timestamp": timestamp(account.created_at),
            "Content-Type": "text/plain; charset=utf-8",
            **headers.owners(call, account.headers),
        }
    )
