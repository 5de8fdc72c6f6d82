"""
/identity/v3/users/{user_id}/credentials/OS-EC2 and /identity/v3/ec2tokens

Only the response to the request that creates a credential contains its secret. Later responses have ``"secret": null``,
which Keystone's clients display as no value.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Id, Name, fill
from stoker.http.identity import auth
from stoker.http.identity.tokens import Token, TokenQuery
from stoker.http.identity.types import NO_LINKS, NoLinks
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration, ec2
from stoker.model import principal as model
from stoker.model.errors import EntityNotFound, Invalid, Unauthorized
from stoker.store import ec2_credentials
from stoker.store.tx import Tx


class Ec2CredentialCreate(Body):
    tenant_id: Annotated[Name | None, Meta(description="The project of the key; by default the token's")] = None


class SignedRequest(Body):
    """A request that was signed with an EC2 key."""

    access: str | None = None
    signature: str | None = None
    verb: str | None = None
    host: str | None = None
    path: str | None = None
    params: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    body_hash: str | None = None


class SignedLogin(Body):
    """``credentials`` is an older name of ``ec2Credentials``."""

    ec2_credentials: SignedRequest | None = field(name="ec2Credentials", default=None)
    credentials: SignedRequest | None = None


class SelfLink(Answer):
    self: str


class Ec2Credential(Answer):
    access: Id
    secret: str | None
    user_id: Id
    project_id: Id = field(name="tenant_id")
    trust_id: None
    links: SelfLink


@operation(200, {"credentials": list[Ec2Credential], "links": NoLinks})
def index(request: RequestContext) -> Response:
    """List the user's credentials without their secrets."""
    with request.app.store.read() as tx:
        rows = ec2_credentials.of_user(tx, request.path["user_id"])
    return Response(200, {"credentials": [_serialize(request, row, None) for row in rows], "links": NO_LINKS})


@operation(201, {"credential": Ec2Credential})
def create(request: RequestContext, body: Ec2CredentialCreate) -> Response:
    """Create a credential for a project in which the user has a role. Raises Invalid or Forbidden."""
    keys, user_id = request.app.identity.ec2, request.path["user_id"]
    project_id = body.tenant_id or request.user.project_id
    row, secret = request.app.store.write(
        lambda tx: administration.create_ec2_key(tx, keys, request.user, user_id, project_id)
    )
    return Response(201, {"credential": _serialize(request, row, secret)})


@operation(200, {"credential": Ec2Credential})
def show(request: RequestContext) -> Response:
    """Return a credential without its secret."""
    with request.app.store.read() as tx:
        return Response(200, {"credential": _serialize(request, _find(tx, request), None)})


@operation(204)
def delete(request: RequestContext) -> Response:
    """Delete a credential."""
    request.app.store.write(lambda tx: ec2_credentials.delete(tx, _find(tx, request).access))
    return Response(204)


@operation(200, {"token": Token}, headers=("X-Subject-Token",))
def log_in(request: RequestContext, body: SignedLogin, query: TokenQuery) -> Response:
    """
    Issue a token for the user who signed the request that the body describes.

    Only site administrators may call it, that is, services that received the signed request. Otherwise anyone who sees
    a signed request could obtain a token with it. Keystone has the same restriction since CVE-2025-65073.
    """
    signed = body.ec2_credentials or body.credentials
    if signed is None:
        raise Invalid("the body must be an object that contains an object ec2Credentials")
    return auth.respond(200, request, request.app.identity.log_in_signed(_verifiable(signed)), query)


def _verifiable(signed: SignedRequest) -> ec2.Request:
    if signed.signature is None or signed.access is None:
        raise Unauthorized("the signature and the access key are required")
    params = signed.params or {}
    request = ec2.Request(
        verb=signed.verb or "GET",
        host=signed.host or "",
        path=signed.path or "/",
        params={name: value for name, value in params.items() if name not in ("Signature", "X-Amz-Signature")},
        signature=signed.signature,
        headers={name.lower(): value for name, value in (signed.headers or {}).items()},
        body_hash=signed.body_hash or "",
    )
    if ec2.access_of(request) != signed.access:
        raise Unauthorized("the access key differs from the one in the signed request")
    return request


def _find(tx: Tx, request: RequestContext) -> model.Ec2Credential:
    row = ec2_credentials.find(tx, request.path["access"])
    if row is None or row.user_id != request.path["user_id"]:
        raise EntityNotFound(f"Could not find credential: {request.path['access']}.")
    return row


def _serialize(request: RequestContext, row: model.Ec2Credential, secret: str | None) -> Ec2Credential:
    path = f"/identity/v3/users/{row.user_id}/credentials/OS-EC2/{row.access}"
    links = SelfLink(self=f"{request.app.settings.public_url}{path}")
    return fill(Ec2Credential, row, secret=secret, trust_id=None, links=links)
