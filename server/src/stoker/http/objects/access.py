"""Access rules of the object store: a token of the account's project, or a signed URL for one object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.requests import Request

from stoker.http.access import TOKEN, Access, Attempt, Caller, Credential, InProject
from stoker.http.threads import in_thread
from stoker.model.errors import Forbidden, Invalid, PreconditionFailed, Unauthorized
from stoker.objects import operations, tempurl
from stoker.store import objects

if TYPE_CHECKING:
    from stoker.http.app import App

#: Path prefix of the API.
MOUNTED_AT = "/object-store"
_PREFIX = "AUTH_"


def account_of(path: Mapping[str, str]) -> str:
    """Return the project id of the path's account. Raises Forbidden if the account's name lacks the prefix."""
    account = path["account"]
    if not account.startswith(_PREFIX):
        raise Forbidden(f"an account's name is {_PREFIX}<project id>, not {account!r:.100}")
    return account.removeprefix(_PREFIX)


class InAccount(InProject):
    """A predicate: the token is for the account's project, with the role."""

    def __call__(self, caller: Caller, attempt: Attempt) -> bool:
        """Return whether the caller has the role. Raises as ``check_text`` and ``account_of``."""
        check_text(attempt.request)
        return super().__call__(caller, attempt._replace(path={"project": account_of(attempt.path)}))


async def _by_signed_url(attempt: Attempt) -> Caller | None:
    request, path, app = attempt
    query = request.query_params
    if "temp_url_sig" not in query and "temp_url_expires" not in query:
        return None
    check_text(request)
    signed, account, container = tempurl.read(query), account_of(path), path["container"]
    if signed is None:
        raise _invalid()
    below = f"{_PREFIX}{account}/{container}/{path['object']}"
    # Signatures may cover Swift's path, Stoker's, and that of the public URL.
    outside = f"{urlsplit(app.settings.public_url).path}{MOUNTED_AT}/v1/"
    paths = [f"{root}{below}" for root in ("/v1/", f"{MOUNTED_AT}/v1/", outside)]

    def by(keys: list[str]) -> bool:
        return tempurl.allows(signed, request.method, paths, keys, now=app.store.clock.now().timestamp())

    # Agents use URLs that Stoker signed with the site's key, which needs no database read.
    by_site = by([app.site_key.of(account)])
    if not by_site and not by(await in_thread(_keys, app, account, container)):
        raise _invalid()
    return Caller(as_owner=by_site)


def account_access(role: str) -> Access:
    """Return the rule of a route that needs a token of the account's project with the role."""
    return Access(TOKEN, allow=InAccount(role))


def object_access(role: str) -> Access:
    """Return the rule of a route that also admits a signed URL; the request then has no principal."""
    return Access(Credential("tempUrl", _by_signed_url), TOKEN, allow=InAccount(role))


def check_text(request: Request) -> None:
    """
    Check that the path and the query are valid UTF-8. Raises PreconditionFailed for the path, Invalid for the query.
    """
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


def _keys(app: App, account: str, container: str) -> list[str]:
    with app.store.read() as tx:
        return operations.keys(objects.find_account(tx, account), objects.find_container(tx, account, container))


def _invalid() -> Unauthorized:
    return Unauthorized("401 Unauthorized: Temp URL invalid")
