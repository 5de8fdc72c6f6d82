"""/identity/v3/users"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from stoker.http.contracts import operation
from stoker.http.fields import Absent, LongText, Name, StrictBody
from stoker.http.identity.serializers import (
    AccountName,
    Password,
    changes_of,
    is_enabled,
    listing,
    serialize_project,
)
from stoker.http.request import RequestContext, Response, client_address
from stoker.identity import administration, passwords
from stoker.model.errors import Invalid, Unauthorized
from stoker.model.principal import User
from stoker.store import identity
from stoker.store.tx import Tx


class UserCreate(StrictBody):
    name: AccountName
    password: Password
    enabled: bool = True
    default_project_id: Name | None = None
    description: LongText | None = None
    email: Name | None = None


class UserUpdate(StrictBody):
    name: AccountName | Absent = UNSET
    password: Password | Absent = UNSET
    enabled: bool | Absent = UNSET
    default_project_id: Name | Absent | None = UNSET
    description: LongText | Absent | None = UNSET
    email: Name | Absent | None = UNSET


class PasswordChange(StrictBody):
    password: Password
    original_password: str


@operation(200)
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    query, enabled = request.query, is_enabled(request)
    users = identity.list_users(tx, name=query.get("name"), domain_id=query.get("domain_id"), enabled=enabled)
    return listing("users", map(_serialize, users))


@operation(200)
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    return {"user": _serialize(administration.user(tx, request.path["user_id"]))}


@operation(201, member="user")
def create(request: RequestContext, body: UserCreate) -> dict[str, Any]:
    fields = changes_of(body)
    hashed = _hash(fields.pop("password"))  # takes too long for a transaction

    def do(tx: Tx) -> User:
        request.subject.detail = body.name
        return administration.create_user(tx, password_hash=hashed, **fields)

    return {"user": _serialize(request.write(do))}


@operation(200, member="user")
def change(request: RequestContext, body: UserUpdate) -> dict[str, Any]:
    """Change a user. A new password ends all tokens of the user."""
    changes = changes_of(body)
    if "password" in changes:
        changes["password_hash"] = _hash(changes.pop("password"))
    user = request.write(lambda tx: administration.change_user(tx, request.path["user_id"], **changes))
    return {"user": _serialize(user)}


@operation(204, member="user")
def change_password(request: RequestContext, body: PasswordChange) -> Response:
    """Change a user's own password. Requires the old password; all tokens of the user end."""
    _check_length(body.password)
    with request.read() as tx:
        user = administration.user(tx, request.path["user_id"])
    address, old = client_address(request.raw, request.app.settings), body.original_password
    if not request.app.identity.is_password(user.id, old, user.password_hash, address):
        raise Unauthorized("The original password is wrong.")
    hashed = passwords.hash_password(body.password)
    request.write(lambda tx: administration.change_user(tx, user.id, password_hash=hashed))
    return Response(204)


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a user with all tokens and credentials. Users cannot delete themselves."""
    if request.path["user_id"] == request.user.user_id:
        raise Invalid("you cannot delete your own user")
    administration.delete_user(tx, request.path["user_id"])


@operation(200)
def projects(request: RequestContext, tx: Tx) -> dict[str, Any]:
    return listing("projects", map(serialize_project, identity.list_projects(tx, user_id=request.path["user_id"])))


def _hash(password: str) -> str:
    _check_length(password)
    return passwords.hash_password(password)


def _check_length(password: str) -> None:
    if len(password) < passwords.MIN_LENGTH:
        raise Invalid(f"password must be a text of {passwords.MIN_LENGTH} to 4096 characters")


def _serialize(user: User) -> dict[str, Any]:
    """Return a user. As in Keystone, a description and an email that the user does not have are absent."""
    optional = {"description": user.description, "email": user.email}
    return {
        "id": user.id,
        "name": user.name,
        "domain_id": user.domain_id,
        "default_project_id": user.default_project_id,
        "enabled": user.enabled,
        "password_expires_at": None,
        "options": {},
        **{name: value for name, value in optional.items() if value is not None},
    }
