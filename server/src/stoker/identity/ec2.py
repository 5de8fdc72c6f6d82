"""
Verification of requests signed with an EC2 key, in the formats of os-collect-config, heat-cfntools and boto. No I/O.

The signature covers verb, host, path and parameters (version 2), and chosen headers and the body, too (version 4).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from stoker.model.errors import Unauthorized

_DIGESTS = {"HmacSHA256": hashlib.sha256, "HmacSHA1": hashlib.sha1}
_PORT = re.compile(r":\d+$")
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<credential>[^,\s]+),\s*SignedHeaders=(?P<headers>[^,\s]+),\s*"
    r"Signature=(?P<signature>[0-9a-f]+)"
)


@dataclass(frozen=True, slots=True)
class Request:
    """
    A signed request.

    ``params`` holds the parameters of query and form as sent, without the signature. The names in ``headers`` are lower
    case.
    """

    verb: str
    host: str
    path: str
    params: Mapping[str, str]
    signature: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body_hash: str = ""


@dataclass(frozen=True, slots=True)
class _Scope:
    """The credential scope and signed headers of version 4, from a header or from parameters."""

    access: str
    date: str
    region: str
    service: str
    headers: tuple[str, ...]
    time: str

    def words(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


def access_of(request: Request) -> str:
    """The access key named in the request. Raises Unauthorized if there is none."""
    if plain := request.params.get("AWSAccessKeyId"):
        return plain
    return _scope(request).access


def check(secret: str, request: Request) -> None:
    """Verify the signature of a request. Raises Unauthorized."""
    if "AWSAccessKeyId" in request.params:
        version = request.params.get("SignatureVersion")
        if version != "2":
            raise Unauthorized(f"signatures of version {version!r} are not supported: use 2 or 4")
        compute = _v2
    else:
        compute = _v4
    # Clients differ in the host that they sign: as written, in lower case, or without its port.
    written = (request.host, request.host.lower())
    hosts = dict.fromkeys((*written, *(_PORT.sub("", host) for host in written)))
    # Compared as bytes, because a signature may contain any text.
    signature = request.signature.encode()
    right = any(hmac.compare_digest(compute(secret, request, host).encode(), signature) for host in hosts)
    if not right:
        raise Unauthorized("the signature does not match")


def sign_v2(secret: str, verb: str, host: str, path: str, params: Mapping[str, str]) -> str:
    """Sign with version 2. ``params`` must contain AWSAccessKeyId, SignatureMethod and SignatureVersion."""
    return _v2(secret, Request(verb, host, path, params, ""), host)


def _v2(secret: str, request: Request, host: str) -> str:
    digest = _DIGESTS.get(request.params.get("SignatureMethod", "HmacSHA256"))
    if digest is None:
        raise Unauthorized("SignatureMethod must be HmacSHA256 or HmacSHA1")
    text = f"{request.verb.upper()}\n{host}\n{request.path}\n{_query(request.params)}"
    return base64.b64encode(hmac.digest(secret.encode(), text.encode("utf-8", "surrogateescape"), digest)).decode()


def _v4(secret: str, request: Request, host: str) -> str:
    scope = _scope(request)
    headers = {**request.headers, "host": host}
    lines = "".join(f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in scope.headers)
    # boto signs a form as the body and leaves the query empty.
    is_form = request.verb == "POST" and "x-amz-algorithm" not in map(str.lower, request.params)
    query = "" if is_form else _query(request.params)
    canonical = "\n".join(
        (request.verb.upper(), quote(request.path, safe="/~"), query, lines, ";".join(scope.headers), request.body_hash)
    )
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{scope.time}\n{scope.words()}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in (scope.date, scope.region, scope.service, "aws4_request"):
        key = hmac.digest(key, part.encode(), hashlib.sha256)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _scope(request: Request) -> _Scope:
    """Raises Unauthorized if the request names no access key."""
    match = _AUTHORIZATION.fullmatch(request.headers.get("authorization", "").strip())
    credential = match["credential"] if match else request.params.get("X-Amz-Credential", "")
    signed = match["headers"] if match else request.params.get("X-Amz-SignedHeaders", "")
    time = request.headers.get("x-amz-date") if match else request.params.get("X-Amz-Date")
    parts = credential.split("/")
    if len(parts) != 5 or not time or not time.startswith(parts[1]):
        raise Unauthorized("the request names no access key, or a date that is not the key's")
    access, date, region, service, _ = parts
    return _Scope(access, date, region, service, tuple(signed.lower().split(";")), time)


def _query(params: Mapping[str, str]) -> str:
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(params.items()))


def _quoted(text: str) -> str:
    return quote(text, safe="-_~", errors="surrogateescape")
