"""A request of CloudFormation's query API: its parameters, and who has signed it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlsplit

from stoker.http.call import Call
from stoker.http.cfn.serialize import Refused
from stoker.identity import ec2
from stoker.model.arn import Arn
from stoker.model.errors import EntityNotFound, Invalid, Unauthorized
from stoker.model.principal import Principal
from stoker.model.stack import Stack
from stoker.store import stacks
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Asking:
    call: Call
    params: Mapping[str, str]
    principal: Principal

    def one(self, name: str) -> str:
        """Raises Refused without that parameter."""
        if name not in self.params:
            raise Refused(400, "MissingParameter", f"{name} parameter is missing")
        return self.params[name]

    @property
    def project(self) -> str:
        assert self.principal.project_id is not None, "keys and tokens without a project are refused"
        return self.principal.project_id

    def stack(self, tx: Tx, name: str | None = None) -> Stack:
        """By name or ARN. Raises EntityNotFound."""
        said = name if name is not None else self.one("StackName")
        if said.lower().startswith("arn:"):
            found = stacks.find(tx, Arn.parse(said).stack_id)
        else:
            found = stacks.named(tx, said, self.project) or stacks.find(tx, said)
        if found is None or found.project_id != self.project or found.deleted_at is not None:
            raise EntityNotFound.of("Stack", said)
        return found


def params_of(call: Call) -> dict[str, str]:
    """Query and form. Raises Invalid for what is no text."""
    said = [call.request.url.query]
    try:
        if call.body and call.media_type == "application/x-www-form-urlencoded":
            said.append(call.body.decode())
        # Of bytes that are no UTF-8, nothing could be looked up or shown.
        pairs = [
            pair
            for each in said
            for pair in parse_qsl(each, keep_blank_values=True, errors="strict", max_num_fields=10_000)
        ]
    except ValueError:
        raise Invalid("the parameters are not of a form: at most 10000 texts in UTF-8") from None
    found = dict(pairs)
    if any("\0" in value or "\0" in name for name, value in found.items()):
        raise Invalid("a parameter holds a NUL character")
    return found


def signer(call: Call, params: Mapping[str, str]) -> Principal:
    """Who asks: by token, or by the signature. Raises Refused, Unauthorized."""
    token = call.request.headers.get("x-auth-token")
    principal = _by_token(call, token) if token else _by_signature(call, params)
    if principal.project_id is None:
        raise Unauthorized("a token of a project is needed")
    return principal


def _by_token(call: Call, token: str) -> Principal:
    return call.services.tokens.known(token) or call.services.tokens.validate(token)


def request_of(call: Call, params: Mapping[str, str]) -> ec2.Request:
    """What was signed; the signature is empty where there is none."""
    headers = {name.lower(): value for name, value in call.request.headers.items()}
    signature = params.get("Signature") or params.get("X-Amz-Signature")
    if signature is None:
        _, _, signature = headers.get("authorization", "").rpartition("Signature=")
    return ec2.Request(
        verb=call.request.method,
        host=headers.get("host", ""),
        path=call.request.scope["path"],
        params={name: value for name, value in params.items() if name not in ("Signature", "X-Amz-Signature")},
        signature=signature,
        headers=headers,
        body_hash=hashlib.sha256(call.body).hexdigest(),
    )


def _by_signature(call: Call, params: Mapping[str, str]) -> Principal:
    request = request_of(call, params)
    if not request.signature:
        raise Refused(400, "IncompleteSignature", "the request is not signed")
    try:
        ec2.access_of(request)
    except Unauthorized as error:
        raise Refused(403, "MissingAuthenticationToken", error.message) from None
    known = call.services.keys
    try:
        return known.authenticate(request)
    except Unauthorized:
        # Behind a proxy that says another host than the one the agent was given.
        public = urlsplit(call.services.settings.public_url).netloc
        if public.lower() == request.host.lower():
            raise
        return known.authenticate(replace(request, host=public))
