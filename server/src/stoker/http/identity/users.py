"""/identity/v3/users, with their passwords and application credentials."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.contracts import NO_NUL, Absent, LongText, Name, StrictBody, operation
from stoker.http.identity.serializers import (
    AccountName,
    Password,
    changes_of,
    is_enabled,
    listing,
    serialize_project,
    time,
)
from stoker.http.request import RequestContext, Response, client_address
from stoker.identity import administration, passwords
from stoker.model.errors import Invalid, Unauthorized
from stoker.model.principal import ApplicationCredential, User
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


class RoleRef(StrictBody):
    """A role by id or name, which are the same."""

    id: str | None = None
    name: str | None = None


class CredentialCreate(StrictBody):
    name: AccountName
    description: LongText | None = None
    secret: Annotated[str, Meta(max_length=4096, pattern=NO_NUL)] | None = None
    roles: list[RoleRef] | None = None
    unrestricted: bool | None = None
    expires_at: str | None = None


@operation(200)
def index_credentials(request: RequestContext, tx: Tx) -> dict[str, Any]:
    rows, name = identity.credentials_of(tx, request.path["user_id"]), request.query.get("name")
    return listing("application_credentials", (_serialize_credential(row) for row in rows if name in (None, row.name)))


@operation(200)
def show_credential(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return an application credential without its secret."""
    row = administration.credential(tx, request.path["user_id"], request.path["credential_id"])
    return {"application_credential": _serialize_credential(row)}


@operation(201, member="application_credential")
def create_credential(request: RequestContext, body: CredentialCreate) -> dict[str, Any]:
    """
    Create an application credential for the token's user in the token's project.

    The response is the only one that contains the secret.
    """
    secret = body.secret or secrets.token_hex(32)
    if len(secret) < passwords.MIN_LENGTH:
        raise Invalid(f"secret must have at least {passwords.MIN_LENGTH} characters; Stoker can generate one")
    hashed = passwords.hash_password(secret)  # takes too long for a transaction
    expires_at = None if body.expires_at is None else _moment(body.expires_at)
    row = request.write(
        lambda tx: administration.create_credential(
            tx,
            request.user,
            name=body.name,
            description=body.description or "",
            secret_hash=hashed,
            roles=[role.id or role.name or "" for role in body.roles] if body.roles else None,
            unrestricted=bool(body.unrestricted),
            expires_at=expires_at,
        )
    )
    return {"application_credential": {**_serialize_credential(row), "secret": secret}}


@operation(204)
def delete_credential(request: RequestContext, tx: Tx) -> None:
    administration.delete_credential(tx, request.path["user_id"], request.path["credential_id"])


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise Invalid(f"expires_at must be a time like 2030-01-31T12:00:00, not {text!r:.100}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _serialize_credential(row: ApplicationCredential) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description or None,
        "project_id": row.project_id,
        "user_id": row.user_id,
        "roles": [{"id": role, "name": role} for role in row.roles],
        "unrestricted": row.unrestricted,
        "expires_at": None if row.expires_at is None else time(row.expires_at).removesuffix("Z"),
        "system": None,
    }
