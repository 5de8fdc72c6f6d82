"""/identity/v3/users/{user_id}/application_credentials"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import NO_NUL, Answer, Body, Id, LongText, fill
from stoker.http.identity.types import NO_LINKS, AccountName, FineTime, NameQuery, NoLinks, RoleName, time
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration, passwords
from stoker.model import principal as model
from stoker.model.errors import Invalid
from stoker.store import application_credentials


class RoleRef(Body):
    """A role by id or name, which are the same."""

    id: str | None = None
    name: str | None = None


class CredentialCreate(Body):
    name: AccountName
    description: LongText | None = None
    secret: Annotated[str, Meta(max_length=4096, pattern=NO_NUL)] | None = None
    roles: list[RoleRef] | None = None
    unrestricted: bool | None = None
    expires_at: Annotated[str | None, Meta(description="A time such as 2030-01-31T12:00:00")] = None


class CredentialCreateBody(Body):
    application_credential: CredentialCreate


class ApplicationCredential(Answer):
    id: Id
    name: Id
    description: str | None
    project_id: Id
    user_id: Id
    roles: list[RoleName]
    unrestricted: bool
    expires_at: FineTime | None
    system: None


class NewApplicationCredential(ApplicationCredential):
    """The only response that contains the secret."""

    secret: str


@operation(200, {"application_credentials": list[ApplicationCredential], "links": NoLinks})
def index(request: RequestContext, query: NameQuery) -> Response:
    """List a user's application credentials."""
    with request.app.store.read() as tx:
        rows = application_credentials.of_user(tx, request.path["user_id"])
    credentials = [_serialize(row) for row in rows if query.name in (None, row.name)]
    return Response(200, {"application_credentials": credentials, "links": NO_LINKS})


@operation(200, {"application_credential": ApplicationCredential})
def show(request: RequestContext) -> Response:
    """Return an application credential without its secret."""
    with request.app.store.read() as tx:
        row = administration.credential(tx, request.path["user_id"], request.path["credential_id"])
    return Response(200, {"application_credential": _serialize(row)})


@operation(201, {"application_credential": NewApplicationCredential}, errors=(409,))
def create(request: RequestContext, body: CredentialCreateBody) -> Response:
    """
    Create an application credential for the token's user in the token's project.

    The response is the only one that contains the secret.
    """
    new = body.application_credential
    secret, hashed = _secret(request, new.secret)
    expires_at = None if new.expires_at is None else _moment(new.expires_at)
    row = request.app.store.write(
        lambda tx: administration.create_credential(
            tx,
            request.user,
            name=new.name,
            description=new.description or "",
            secret_hash=hashed,
            roles=[role.id or role.name or "" for role in new.roles] if new.roles else None,
            unrestricted=bool(new.unrestricted),
            expires_at=expires_at,
        )
    )
    return Response(201, {"application_credential": fill(NewApplicationCredential, _serialize(row), secret=secret)})


@operation(204)
def delete(request: RequestContext) -> Response:
    """Delete an application credential."""
    user_id, id = request.path["user_id"], request.path["credential_id"]
    request.app.store.write(lambda tx: administration.delete_credential(tx, user_id, id))
    return Response(204)


def _secret(request: RequestContext, secret: str | None) -> tuple[str, str]:
    if not secret:
        return administration.new_secret()
    least = request.app.settings.min_password_length
    if len(secret) < least:
        raise Invalid(f"secret must have at least {least} characters (min_password_length); Stoker can generate one")
    return secret, passwords.hash_password(secret)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise Invalid(f"expires_at must be a time like 2030-01-31T12:00:00, not {text!r:.100}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _serialize(row: model.ApplicationCredential) -> ApplicationCredential:
    return fill(
        ApplicationCredential,
        row,
        description=row.description or None,
        roles=[RoleName(id=role, name=role) for role in row.roles],
        expires_at=None if row.expires_at is None else time(row.expires_at),
        system=None,
    )
