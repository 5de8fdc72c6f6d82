"""
/identity/v3/users/{user_id}/credentials/OS-EC2 and /identity/v3/ec2tokens

Only the response to the request that creates a credential contains its secret. Later responses have ``"secret": null``,
which Keystone's clients display as no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.http import params as http_params
from stoker.http.identity import auth
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration, ec2
from stoker.model.errors import EntityNotFound, Invalid, Unauthorized
from stoker.model.principal import Ec2Credential
from stoker.store import ec2_credentials
from stoker.store.tx import Tx


def index(request: RequestContext) -> Response:
    """List the user's credentials without their secrets."""
    with request.app.store.read() as tx:
        found = ec2_credentials.of_user(tx, request.path["user_id"])
    return Response(200, {"credentials": [_serialize(request, each, secret=None) for each in found], "links": {}})


def create(request: RequestContext) -> Response:
    """
    Create a credential for the project ``tenant_id``, by default the token's project.

    The user must have a role in the project. Raises Invalid or Forbidden.
    """
    user_id = request.path["user_id"]
    project_id = http_params.text(http_params.body(request).get("tenant_id"), "tenant_id") or request.user.project_id

    credential, secret = request.app.store.write(
        lambda tx: administration.create_ec2_key(tx, request.app.identity.ec2, request.user, user_id, project_id)
    )
    return Response(201, {"credential": _serialize(request, credential, secret)})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = _find(tx, request)
    return Response(200, {"credential": _serialize(request, found, secret=None)})


def delete(request: RequestContext) -> Response:
    request.app.store.write(lambda tx: ec2_credentials.delete(tx, _find(tx, request).access))
    return Response(204)


def log_in(request: RequestContext) -> Response:
    """
    Issue a token for the user who signed the request that the body describes.

    Only site administrators may call it, that is, services that received the signed request. Otherwise anyone who sees
    a signed request could obtain a token with it. Keystone has the same restriction since CVE-2025-65073.
    """
    body = http_params.body(request)
    said = body.get("ec2Credentials") or body.get("credentials")
    if not isinstance(said, dict):
        raise Invalid("the body must be an object that contains an object ec2Credentials")
    issued = request.app.identity.log_in_signed(_request(said))
    return Response(200, auth.serialize(request, issued), {"X-Subject-Token": issued.token, "Vary": "X-Auth-Token"})


def _request(said: Mapping[str, Any]) -> ec2.Request:
    params = {**_texts(said.get("params"), "params")}
    signature = said.get("signature")
    access = said.get("access")
    if not isinstance(signature, str) or not isinstance(access, str):
        raise Unauthorized("the signature and the access key are required")
    request = ec2.Request(
        verb=_text(said, "verb") or "GET",
        host=_text(said, "host"),
        path=_text(said, "path") or "/",
        params={name: value for name, value in params.items() if name not in ("Signature", "X-Amz-Signature")},
        signature=signature,
        headers={name.lower(): value for name, value in _texts(said.get("headers"), "headers").items()},
        body_hash=_text(said, "body_hash"),
    )
    if ec2.access_of(request) != access:
        raise Unauthorized("the access key differs from the one in the signed request")
    return request


def _texts(said: Any, name: str) -> dict[str, str]:
    found = http_params.mapping(said, name) or {}
    if not all(isinstance(value, str) for value in found.values()):
        raise Invalid(f"{name} must be a map of texts")
    return found


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{name} must be text")
    return value or ""


def _find(tx: Tx, request: RequestContext) -> Ec2Credential:
    found = ec2_credentials.find(tx, request.path["access"])
    if found is None or found.user_id != request.path["user_id"]:
        raise EntityNotFound(f"Could not find credential: {request.path['access']}.")
    return found


def _serialize(request: RequestContext, credential: Ec2Credential, secret: str | None) -> dict[str, Any]:
    url = f"{request.app.settings.public_url}/identity/v3/users/{credential.user_id}/credentials/OS-EC2"
    return {
        "access": credential.access,
        "secret": secret,
        "user_id": credential.user_id,
        "tenant_id": credential.project_id,
        "trust_id": None,
        "links": {"self": f"{url}/{credential.access}"},
    }
