"""/identity/v3/users"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from stoker.http.client_address import client_address
from stoker.http.contracts import operation
from stoker.http.fields import Absent, Answer, Body, Id, Name, fill
from stoker.http.identity.types import (
    NO_LINKS,
    AccountName,
    NameQuery,
    NoLinks,
    Password,
    Project,
    changes_of,
    serialize_project,
)
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration, passwords
from stoker.model import principal as model
from stoker.model.errors import Invalid, Unauthorized
from stoker.store import identity


class UserCreate(Body):
    name: AccountName
    password: Password
    enabled: bool = True
    default_project_id: Name | None = None


class UserCreateBody(Body):
    user: UserCreate


class UserUpdate(Body):
    name: AccountName | Absent = UNSET
    password: Password | Absent = UNSET
    enabled: bool | Absent = UNSET
    default_project_id: Name | Absent | None = UNSET


class UserUpdateBody(Body):
    user: UserUpdate


class PasswordChange(Body):
    password: Password
    original_password: str


class PasswordChangeBody(Body):
    user: PasswordChange


class User(Answer):
    id: Id
    name: str
    domain_id: Id
    default_project_id: str | None
    enabled: bool
    password_expires_at: None
    options: dict[str, Any]


@operation(200, {"users": list[User], "links": NoLinks})
def index(request: RequestContext, query: NameQuery) -> Response:
    """List the users."""
    with request.app.store.read() as tx:
        users = [user for user in identity.list_users(tx) if query.name in (None, user.name)]
    return Response(200, {"users": [_serialize(user) for user in users], "links": NO_LINKS})


@operation(200, {"user": User})
def show(request: RequestContext) -> Response:
    """Return a user."""
    with request.app.store.read() as tx:
        return Response(200, {"user": _serialize(administration.user(tx, request.path["user_id"]))})


@operation(201, {"user": User}, errors=(404, 409))
def create(request: RequestContext, body: UserCreateBody) -> Response:
    """Create a user."""
    new, hashed = body.user, _hash(request, body.user.password)
    user = request.app.store.write(
        lambda tx: administration.create_user(tx, new.name, hashed, new.default_project_id, enabled=new.enabled)
    )
    return Response(201, {"user": _serialize(user)})


@operation(200, {"user": User}, errors=(409,))
def change(request: RequestContext, body: UserUpdateBody) -> Response:
    """Change a user. A new password ends all tokens of the user."""
    changes = changes_of(body.user)
    if "password" in changes:
        changes["password_hash"] = _hash(request, changes.pop("password"))
    user = request.app.store.write(lambda tx: administration.change_user(tx, request.path["user_id"], **changes))
    return Response(200, {"user": _serialize(user)})


@operation(204)
def change_password(request: RequestContext, body: PasswordChangeBody) -> Response:
    """Change a user's own password. Requires the old password; all tokens of the user end."""
    _check_length(request, body.user.password)
    with request.app.store.read() as tx:
        user = administration.user(tx, request.path["user_id"])
    address, old = client_address(request.raw, request.app.settings), body.user.original_password
    if not request.app.identity.is_password(user.id, old, user.password_hash, address):
        raise Unauthorized("The original password is wrong.")
    hashed = passwords.hash_password(body.user.password)
    request.app.store.write(lambda tx: administration.change_user(tx, user.id, password_hash=hashed))
    return Response(204)


@operation(204, errors=(409,))
def delete(request: RequestContext) -> Response:
    """Delete a user with all tokens and credentials. Users cannot delete themselves."""
    if request.path["user_id"] == request.user.user_id:
        raise Invalid("you cannot delete your own user")
    request.app.store.write(lambda tx: administration.delete_user(tx, request.path["user_id"]))
    return Response(204)


@operation(200, {"projects": list[Project], "links": NoLinks})
def projects(request: RequestContext) -> Response:
    """List the projects in which a user has a role."""
    with request.app.store.read() as tx:
        projects = identity.projects_of(tx, request.path["user_id"])
    return Response(200, {"projects": [serialize_project(project) for project in projects], "links": NO_LINKS})


def _hash(request: RequestContext, password: str) -> str:
    _check_length(request, password)
    return passwords.hash_password(password)


def _check_length(request: RequestContext, password: str) -> None:
    least = request.app.settings.min_password_length
    if len(password) < least:
        raise Invalid(f"password must be a text of {least} to 4096 characters (min_password_length)")


def _serialize(user: model.User) -> User:
    return fill(User, user, password_expires_at=None, options={})
