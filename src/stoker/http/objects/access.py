"""Who may call the object store: a token of the account's project, or a signed URL for one object."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.requests import Request

from stoker.http import errors
from stoker.http.access import Admitted, Token
from stoker.http.services import Services
from stoker.http.threads import in_thread
from stoker.model.errors import Forbidden, Invalid, PreconditionFailed, Unauthorized
from stoker.objects import holding, tempurl
from stoker.store import accounts, containers

_PREFIX = "AUTH_"
#: A signed URL must not be a way to things that it was not signed for.
_FORBIDDEN = ("x-object-manifest", "x-symlink-target", "x-copy-from")


def account_of(path: Mapping[str, str]) -> str:
    """The project's id. Raises Forbidden."""
    said = path["account"]
    if not said.startswith(_PREFIX):
        raise Forbidden(f"accounts are called {_PREFIX}<project id>, not {said!r:.100}")
    return said.removeprefix(_PREFIX)


class OwnToken(Token):
    """A token of the account's project with one of these roles."""

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        readable(request)
        return await super().admit(request, {"project": account_of(path)}, services)


class TokenOrSignature(OwnToken):
    """Also a signed URL; then there is no principal."""

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        readable(request)
        query = request.query_params
        if "temp_url_sig" not in query and "temp_url_expires" not in query:
            return await super().admit(request, path, services)
        signed = tempurl.read(query)
        if signed is None or (signed.digest == "sha1" and not services.settings.tempurl_sha1):
            raise _invalid()
        address = request.client.host if request.client else None
        account, container, name = account_of(path), path["container"], path["object"]
        paths = [f"{root}{_PREFIX}{account}/{container}/" for root in _roots(services.settings.public_url)]

        def by(keys: list[str]) -> bool:
            return tempurl.allows(signed, request.method, name, paths, keys, now=time.time())

        # Agents come with URLs that Stoker made: their key needs no look into the store.
        allowed = by([services.site_key.of(account)]) or by(await in_thread(_keys, services, account, container))
        if not allowed or not tempurl.from_allowed_place(signed, address):
            raise _invalid()
        for header in _FORBIDDEN:
            if request.method in ("PUT", "POST") and header in request.headers:
                raise Invalid(f"The header {header!r} is not allowed in this tempurl")
        return Admitted()


def readable(request: Request) -> None:
    """Raises PreconditionFailed for a path that is no text, Invalid for such a query."""
    if not _is_text(request.scope.get("raw_path") or b""):
        raise PreconditionFailed("Invalid UTF8 or contains NULL")
    if not _is_text(request.scope["query_string"]):
        raise Invalid("the query's parameters must be valid UTF-8")


def _is_text(quoted: bytes) -> bool:
    try:
        unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError:
        return False
    return True


def _roots(public_url: str) -> list[str]:
    """Swift's own path; and that of the URL as it is seen here, and from outside, which some sign."""
    outside = f"{urlsplit(public_url).path}{errors.OBJECTS}/v1/"
    return list(dict.fromkeys(["/v1/", f"{errors.OBJECTS}/v1/", outside]))


def _keys(services: Services, account: str, container: str) -> list[str]:
    with services.store.read() as tx:
        return holding.keys(accounts.find(tx, account), containers.find(tx, account, container))


def _invalid() -> Unauthorized:
    return Unauthorized("401 Unauthorized: Temp URL invalid")
