"""/identity/v3/users/{user}/credentials/OS-EC2 and /identity/v3/ec2tokens"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.identity import auth, rules
from stoker.identity import administration, ec2
from stoker.model.errors import EntityNotFound, Forbidden, Invalid, Unauthorized
from stoker.model.principal import Ec2Credential
from stoker.store import ec2_credentials, identity
from stoker.store.tx import Tx


def index(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    with call.services.store.read() as tx:
        found = ec2_credentials.of_user(tx, call.path["user_id"])
    return Reply(200, {"credentials": [_shown(call, each) for each in found], "links": {}})


def create(call: Call) -> Reply:
    """For a project the user has a role in; without one said, for the token's."""
    user_id = call.path["user_id"]
    rules.require_self(call, user_id)
    if call.user.restricted or call.user.resource_id is not None:
        raise Forbidden("You are not authorized to perform the requested action.")
    project_id = reading.text(reading.body(call).get("tenant_id"), "tenant_id") or call.user.project_id

    def do(tx: Tx) -> Ec2Credential:
        administration.user(tx, user_id)
        if project_id is None or not identity.roles(tx, user_id, project_id):
            raise Invalid("tenant_id must be the id of a project that the user has a role in")
        return call.services.identity.ec2.create(tx, user_id, project_id)[0]

    return Reply(201, {"credential": _shown(call, call.services.store.write(do))})


def show(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    with call.services.store.read() as tx:
        found = _found(tx, call)
    return Reply(200, {"credential": _shown(call, found)})


def delete(call: Call) -> Reply:
    rules.require_self(call, call.path["user_id"])
    if call.user.restricted:
        raise Forbidden("You are not authorized to perform the requested action.")
    call.services.store.write(lambda tx: ec2_credentials.delete(tx, _found(tx, call).access))
    return Reply(204)


def log_in(call: Call) -> Reply:
    """
    A token for whoever signed the request that the body describes.

    Only for a service that was itself asked, as Keystone has it since the ids of requests leaked: anybody who sees a
    signed request could have a token for it otherwise.
    """
    rules.require_admin(call)
    body = reading.body(call)
    said = body.get("ec2Credentials") or body.get("credentials")
    if not isinstance(said, dict):
        raise Invalid("the body must be an object with an object ec2Credentials in it")
    issued = call.services.identity.log_in_signed(_request(said))
    return Reply(200, auth.shown(call, issued), {"X-Subject-Token": issued.token, "Vary": "X-Auth-Token"})


def _request(said: Mapping[str, Any]) -> ec2.Request:
    params = {**_texts(said.get("params"), "params")}
    signature = said.get("signature")
    access = said.get("access")
    if not isinstance(signature, str) or not isinstance(access, str):
        raise Unauthorized("the signature and the access key are needed")
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
        raise Unauthorized("the access key is not the one that signed")
    return request


def _texts(said: Any, name: str) -> dict[str, str]:
    found = reading.mapping(said, name) or {}
    if not all(isinstance(value, str) for value in found.values()):
        raise Invalid(f"{name} must be a map of texts")
    return found


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{name} must be text")
    return value or ""


def _found(tx: Tx, call: Call) -> Ec2Credential:
    found = ec2_credentials.find(tx, call.path["access"])
    if found is None or found.user_id != call.path["user_id"]:
        raise EntityNotFound(f"Could not find credential: {call.path['access']}.")
    return found


def _shown(call: Call, credential: Ec2Credential) -> dict[str, Any]:
    url = f"{call.services.settings.public_url}/identity/v3/users/{credential.user_id}/credentials/OS-EC2"
    return {
        "access": credential.access,
        "secret": call.services.identity.ec2.secret(credential),
        "user_id": credential.user_id,
        "tenant_id": credential.project_id,
        "trust_id": None,
        "links": {"self": f"{url}/{credential.access}"},
    }
