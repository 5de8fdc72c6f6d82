"""Many deletions in one request, and in one transaction."""

from __future__ import annotations

from urllib.parse import unquote

from stoker.http.call import Call, Reply
from stoker.http.objects.access import account_of
from stoker.model.errors import Conflict, EntityNotFound, Invalid, RequestLimitExceeded
from stoker.objects import holding, writing
from stoker.store.tx import Tx

#: Names a request may have.
MOST = 1000


def delete(call: Call) -> Reply:
    """Each line a container, or a container and an object, percent-encoded."""
    account = account_of(call.path)
    try:
        lines = [line.strip() for line in call.body.decode().splitlines() if line.strip()]
        names = [unquote(line, errors="strict") for line in lines]
    except UnicodeDecodeError:
        raise Invalid("the names to delete must be percent-encoded UTF-8, a line each") from None
    if len(names) > MOST:
        raise RequestLimitExceeded(f"Maximum Bulk Deletes: {MOST} per request")
    return Reply(200, call.services.store.write(lambda tx: _delete(tx, account, names)))


def _delete(tx: Tx, account: str, names: list[str]) -> dict[str, object]:
    deleted = missing = 0
    errors: list[list[str]] = []
    for each in names:
        container, _, name = each.lstrip("/").partition("/")
        try:
            if "\0" in each:
                raise Invalid("no name holds a NUL character")
            if name:
                found = writing.delete(tx, account, container, name).found
            else:
                holding.delete_container(tx, account, container)
                found = True
            deleted, missing = deleted + found, missing + (not found)
        except EntityNotFound:
            missing += 1
        except Conflict:
            errors.append([each, "409 Conflict"])
        except Invalid:
            errors.append([each, "400 Bad Request"])
    return {
        "Response Status": "400 Bad Request" if errors else "200 OK",
        "Response Body": "",
        "Number Deleted": deleted,
        "Number Not Found": missing,
        "Errors": errors,
    }
