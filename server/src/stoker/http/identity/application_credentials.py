"""/identity/v3/users/{user_id}/application_credentials"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta

from stoker.http.contracts import operation
from stoker.http.fields import NO_NUL, LongText, StrictBody
from stoker.http.identity.serializers import AccountName, listing, time
from stoker.http.request import RequestContext
from stoker.identity import administration, passwords
from stoker.model.errors import Invalid
from stoker.model.principal import ApplicationCredential
from stoker.store import application_credentials
from stoker.store.tx import Tx


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
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    rows, name = application_credentials.of_user(tx, request.path["user_id"]), request.query.get("name")
    return listing("application_credentials", (_serialize(row) for row in rows if name in (None, row.name)))


@operation(200)
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return an application credential without its secret."""
    row = administration.credential(tx, request.path["user_id"], request.path["credential_id"])
    return {"application_credential": _serialize(row)}


@operation(201, member="application_credential")
def create(request: RequestContext, body: CredentialCreate) -> dict[str, Any]:
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
    return {"application_credential": {**_serialize(row), "secret": secret}}


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    administration.delete_credential(tx, request.path["user_id"], request.path["credential_id"])


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise Invalid(f"expires_at must be a time like 2030-01-31T12:00:00, not {text!r:.100}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _serialize(row: ApplicationCredential) -> dict[str, Any]:
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
