"""Bulk deletion: many names in one request and one transaction."""

from __future__ import annotations

from urllib.parse import unquote

from msgspec import field

from stoker.http.fields import Answer, Count
from stoker.http.objects.access import account_of
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Conflict, EntityNotFound, Invalid, RequestLimitExceeded
from stoker.objects import container_operations, object_operations
from stoker.store.tx import Tx

#: Maximum names in one request.
MOST = 1000


class BulkReport(Answer):
    """Swift's report of a bulk deletion. Each error is a path and a status."""

    status: str = field(name="Response Status")
    body: str = field(name="Response Body")
    deleted: Count = field(name="Number Deleted")
    missing: Count = field(name="Number Not Found")
    errors: list[list[str]] = field(name="Errors")


def delete(request: RequestContext) -> Response:
    """
    Delete the containers and objects that the body names: one percent-encoded path per line.

    Returns Swift's report. Raises Invalid or RequestLimitExceeded.
    """
    account = account_of(request.path)
    try:
        lines = [line.strip() for line in request.body.decode().splitlines() if line.strip()]
        names = [unquote(line, errors="strict") for line in lines]
    except UnicodeDecodeError:
        raise Invalid("the names to delete must be percent-encoded UTF-8, one per line") from None
    if len(names) > MOST:
        raise RequestLimitExceeded(f"Maximum Bulk Deletes: {MOST} per request")
    return Response(200, request.app.store.write(lambda tx: _delete(tx, account, names)))


def _delete(tx: Tx, account: str, names: list[str]) -> BulkReport:
    deleted = missing = 0
    errors: list[list[str]] = []
    for path in names:
        container, _, name = path.lstrip("/").partition("/")
        try:
            if "\0" in path:
                raise Invalid("a name must not contain NUL")
            if name:
                existed = object_operations.delete(tx, account, container, name).existed
            else:
                container_operations.delete_container(tx, account, container)
                existed = True
            deleted, missing = deleted + existed, missing + (not existed)
        except EntityNotFound:
            missing += 1
        except Conflict:
            errors.append([path, "409 Conflict"])
        except Invalid:
            errors.append([path, "400 Bad Request"])
    status = "400 Bad Request" if errors else "200 OK"
    return BulkReport(status=status, body="", deleted=deleted, missing=missing, errors=errors)
