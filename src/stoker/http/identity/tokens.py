"""The representation of tokens, which logins and the requests for a token return."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta

from stoker.http.fields import Absent, Answer, Id, Query, fill
from stoker.http.identity.catalog import CatalogEntry, catalog
from stoker.http.identity.types import DOMAIN, DomainName, FineTime, RoleName, time
from stoker.http.request_context import RequestContext
from stoker.identity.tokens import Issued
from stoker.store import identity


class TokenQuery(Query):
    nocatalog: Annotated[str | None, Meta(description="The token is returned without the catalog")] = None


class TokenUser(Answer):
    id: Id
    name: Id
    domain: DomainName
    password_expires_at: None


class TokenProject(Answer):
    id: Id
    name: Id
    domain: DomainName


class TokenCredential(Answer):
    id: Id
    restricted: bool


class Token(Answer):
    methods: list[str]
    user: TokenUser
    audit_ids: list[str]
    issued_at: FineTime
    expires_at: FineTime
    project: TokenProject | Absent = UNSET
    is_domain: bool | Absent = UNSET
    system: dict[Literal["all"], bool] | Absent = UNSET
    roles: list[RoleName] | Absent = UNSET
    catalog: list[CatalogEntry] | Absent = UNSET
    application_credential: TokenCredential | Absent = UNSET


def serialize_token(request: RequestContext, issued: Issued, query: TokenQuery) -> Token:
    """Return Keystone's representation of an issued token."""
    principal, row = issued.principal, issued.row
    token = Token(
        methods=list(row.methods),
        user=TokenUser(id=principal.user_id, name=principal.user_name, domain=DOMAIN, password_expires_at=None),
        audit_ids=[],
        issued_at=time(row.issued_at),
        expires_at=time(principal.expires_at),
    )
    if principal.project_id is not None:
        with request.app.store.read() as tx:
            project = identity.project(tx, principal.project_id)
        if project is not None:
            token.project, token.is_domain = fill(TokenProject, project, domain=DOMAIN), False
    if row.system:
        token.system = {"all": True}
    if token.project is not UNSET or row.system:
        token.roles = [RoleName(id=role, name=role) for role in sorted(principal.roles)]
        if query.nocatalog is None:
            token.catalog = catalog(request.app.settings, principal.project_id)
    if row.application_credential_id is not None:
        token.application_credential = TokenCredential(
            id=row.application_credential_id, restricted=principal.restricted
        )
    return token
