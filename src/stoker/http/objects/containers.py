"""Containers: made, described, listed, and deleted when empty."""

from __future__ import annotations

from stoker.http.call import Call, Reply
from stoker.http.objects import headers, listings
from stoker.http.objects.access import account_of
from stoker.model.errors import Invalid
from stoker.model.objects import Container, timestamp
from stoker.objects import holding
from stoker.store import objects
from stoker.store.tx import Tx

#: What Swift calls its first storage policy; here there is one.
_POLICY = "Policy-0"
_LISTS = ("x-container-read", "x-container-write")


def put(call: Call) -> Reply:
    account, name, said = account_of(call.path), call.path["container"], _said(call)
    made = call.services.store.write(lambda tx: holding.create_container(tx, account, name, said))
    return Reply(201 if made else 202)


def post(call: Call) -> Reply:
    account, name, said = account_of(call.path), call.path["container"], _said(call)
    call.services.store.write(lambda tx: holding.change_container(tx, account, name, said))
    return Reply(204)


def delete(call: Call) -> Reply:
    account, name = account_of(call.path), call.path["container"]
    call.services.store.write(lambda tx: holding.delete_container(tx, account, name))
    return Reply(204)


def head(call: Call) -> Reply:
    with call.services.store.read() as tx:
        return Reply(204, headers=_headers(call, _found(call, tx)))


def index(call: Call) -> Reply:
    account, name = account_of(call.path), call.path["container"]
    page = listings.asked(call)
    kind = "versions" if "versions" in call.query else "container"
    if kind == "versions" and (page.delimiter or page.path is not None):
        raise Invalid("a list of versions knows neither delimiter nor path: ask with a prefix")
    with call.services.store.read() as tx:
        said = _headers(call, _found(call, tx))
        listed = objects.versions if kind == "versions" else objects.page
        found = listed(tx, account, name, page)
    return listings.reply(call, name, kind, found, said)


def _found(call: Call, tx: Tx) -> Container:
    return holding.container(tx, account_of(call.path), call.path["container"])


def _said(call: Call) -> dict[str, str]:
    said = headers.said(call.request)
    for name in _LISTS:
        if said.get(name):
            raise Invalid(f"containers have no access lists here ({name}): give others signed URLs instead")
    return said


def _headers(call: Call, container: Container) -> dict[str, str]:
    kept = headers.owners(call, container.headers)
    if "x-versions-enabled" in kept:
        kept["x-versions-enabled"] = kept["x-versions-enabled"].title()
    return headers.wire(
        {
            "X-Container-Object-Count": str(container.objects),
            "X-Container-Bytes-Used": str(container.bytes),
            "X-Timestamp": timestamp(container.created_at),
            "Last-Modified": headers.http_time(container.created_at),
            "X-Storage-Policy": _POLICY,
            "Accept-Ranges": "bytes",
            "Content-Type": "text/plain; charset=utf-8",
            **kept,
        }
    )
