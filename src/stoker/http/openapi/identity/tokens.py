"""Tokens, and the lookups that every token permits."""

from __future__ import annotations

from stoker.http.identity import auth, ec2_credentials, reads
from stoker.http.openapi.operations import Answer, Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    FINE_TIME,
    FLAG,
    ID,
    MAP,
    NOTHING,
    REQUESTED,
    TEXT,
    Schema,
    by_name,
    list_of,
    maybe,
    one_of,
    record,
    ref,
    request,
    under,
    with_description,
)

_ROLE = record({"id": ID, "name": ID})
_LINKS = record({})
_DOMAIN = request(id=TEXT, name=TEXT)
_NAMED = request(id=maybe(TEXT), name=maybe(TEXT), domain=maybe(_DOMAIN))
_ENDPOINT: dict[str, Schema] = {"id": ID, "interface": TEXT, "region": TEXT, "region_id": TEXT, "url": TEXT}

SCHEMAS: dict[str, Schema] = {
    "DomainName": record({"id": ID, "name": ID}),
    "Domain": record({"id": ID, "name": ID, "enabled": FLAG, "description": TEXT}),
    "CatalogEntry": record({"id": ID, "type": TEXT, "name": TEXT, "endpoints": list_of(record(_ENDPOINT))}),
    "Token": record(
        {
            "methods": list_of(TEXT),
            "user": record({"id": ID, "name": ID, "domain": ref("DomainName"), "password_expires_at": NOTHING}),
            "audit_ids": list_of(TEXT),
            "issued_at": FINE_TIME,
            "expires_at": FINE_TIME,
        },
        project=record({"id": ID, "name": ID, "domain": ref("DomainName")}),
        system=record({"all": FLAG}),
        is_domain=FLAG,
        roles=list_of(_ROLE),
        catalog=list_of(ref("CatalogEntry")),
        application_credential=record({"id": ID, "restricted": FLAG}),
    ),
    "KeystoneVersion": record(
        {
            "id": TEXT,
            "status": TEXT,
            "updated": TEXT,
            "media-types": list_of(record({"base": TEXT, "type": TEXT})),
            "links": list_of(ref("Link")),
        }
    ),
}
_SYSTEM = request({"all": {"const": True}})
_CATALOG_WANTED: dict[str, Schema] = {"nocatalog": with_description(REQUESTED, "Leave the catalog out")}
_TOKEN = under("token", ref("Token"))
_DOMAINS = ok(record({"domains": list_of(ref("Domain")), "links": _LINKS}))

NOUN = Noun(
    "Tokens",
    {
        reads.versions: Operation(
            summary="The versions of the API",
            answers=ok(under("versions", under("values", list_of(ref("KeystoneVersion")))), 300),
        ),
        reads.version: Operation(
            summary="The version of the API", answers=ok(under("version", ref("KeystoneVersion")))
        ),
        auth.log_in: Operation(
            summary="Log in; the token is in the header X-Subject-Token",
            query=_CATALOG_WANTED,
            body=request(
                {
                    "auth": request(
                        {
                            "identity": request(
                                {"methods": list_of(one_of("password", "token", "application_credential"))},
                                password=request({"user": {**_NAMED, "required": ["password"]}}),
                                token=request({"id": TEXT}),
                                application_credential={**_NAMED, "required": ["secret"]},
                            )
                        },
                        scope={
                            "anyOf": [request(project=_NAMED), request(system=_SYSTEM), one_of("unscoped"), NOTHING]
                        },
                    )
                }
            ),
            answers=ok(_TOKEN, 201, "X-Subject-Token"),
            errors=(401,),
        ),
        auth.show: Operation(
            summary="What a token is good for",
            query=_CATALOG_WANTED,
            headers=("X-Subject-Token",),
            answers={200: Answer(_TOKEN, ("X-Subject-Token",))},
            errors=(404,),
        ),
        auth.revoke: Operation(summary="End a token", headers=("X-Subject-Token",), answers=empty(), errors=(404,)),
        auth.catalog: Operation(
            summary="Where the services are",
            answers=ok(record({"catalog": list_of(ref("CatalogEntry")), "links": _LINKS})),
        ),
        auth.projects: Operation(
            summary="The projects that the caller has a role in",
            answers=ok(record({"projects": list_of(ref("Project")), "links": _LINKS})),
        ),
        auth.domains: Operation(summary="The domains: there is one", answers=_DOMAINS),
        reads.show_domain: Operation(summary="One domain", answers=ok(under("domain", ref("Domain")))),
        reads.services: Operation(
            summary="The services",
            answers=ok(
                record(
                    {
                        "services": list_of(record({"id": ID, "type": TEXT, "name": TEXT, "enabled": FLAG})),
                        "links": _LINKS,
                    }
                )
            ),
        ),
        reads.endpoints: Operation(
            summary="The services' addresses",
            answers=ok(
                record(
                    {"endpoints": list_of(record({**_ENDPOINT, "service_id": ID, "enabled": FLAG})), "links": _LINKS}
                )
            ),
        ),
        reads.regions: Operation(
            summary="The regions: there is one",
            answers=ok(
                record(
                    {
                        "regions": list_of(record({"id": ID, "description": TEXT, "parent_region_id": maybe(TEXT)})),
                        "links": _LINKS,
                    }
                )
            ),
        ),
        ec2_credentials.log_in: Operation(
            summary="A token for whoever signed the request that the body describes",
            query=_CATALOG_WANTED,
            body=request(
                ec2Credentials=request(
                    {"access": TEXT, "signature": TEXT},
                    verb=maybe(TEXT),
                    host=maybe(TEXT),
                    path=maybe(TEXT),
                    params=maybe(by_name(TEXT)),
                    headers=maybe(by_name(TEXT)),
                    body_hash=maybe(TEXT),
                ),
                credentials=with_description(MAP, "The same under an older name"),
            )
            | {"anyOf": [{"required": ["ec2Credentials"]}, {"required": ["credentials"]}]},
            answers=ok(_TOKEN, 200, "X-Subject-Token"),
        ),
    },
    SCHEMAS,
)
