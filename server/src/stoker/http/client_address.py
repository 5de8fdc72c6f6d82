"""The client address of a request, behind the proxies that the site declares."""

from __future__ import annotations

from starlette.requests import Request

from stoker.model.addresses import client_prefix
from stoker.settings import Settings


def client_address(request: Request, settings: Settings) -> str:
    """Return the address, or its network prefix, that rate limits count as one client."""
    return client_prefix(client_host(request, settings))


def client_host(request: Request, settings: Settings) -> str:
    """
    Return the address of the client; empty if it is not known.

    ``X-Forwarded-For`` is read only if a proxy of ``proxy_addresses`` sends the request. Only the entries that such
    proxies added are trusted: from the end of the list to the first address that is not a declared proxy.
    """
    host = request.client.host if request.client else ""
    if settings.is_proxy(host):
        forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
        for entry in reversed(forwarded.split(",")):
            host = entry.strip()[:64] or host
            if not settings.is_proxy(host):
                break
    return host
