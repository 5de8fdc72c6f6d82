"""Signatures, held against the signer that os-collect-config and Heat use."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keystoneclient.contrib.ec2.utils import Ec2Signer

from stoker.identity import ec2
from stoker.model.errors import Unauthorized
from support.signatures import sign_v4

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SECRET = "s3cret"


TIME = "2026-03-04T05:06:07Z"


def v2(**params: str) -> ec2.Request:
    """Without a time in it."""
    said = {"AWSAccessKeyId": "key", "SignatureVersion": "2", "Action": "DescribeStackResource", **params}
    signed = {"verb": "GET", "host": "Stoker.example:8004", "path": "/cfn/v1/", "params": said}
    signature = Ec2Signer(SECRET).generate({**signed, "params": dict(said)})
    said = {"SignatureMethod": "HmacSHA256", **said}
    return ec2.Request("GET", "Stoker.example:8004", "/cfn/v1/", said, signature)


def v4(verb: str = "GET", body: bytes = b"", **params: str) -> ec2.Request:
    host = "stoker.example:8004"
    headers = {name.lower(): value for name, value in sign_v4(host, "key", SECRET, params, NOW, verb, body).items()}
    signature = headers["authorization"].rpartition("=")[2]
    return ec2.Request(verb, host, "/cfn/v1/", params, signature, headers, hashlib.sha256(body).hexdigest())


@pytest.mark.parametrize(
    "request_",
    [
        v2(Timestamp=TIME),
        v2(Timestamp=TIME, Weird="a b/~*+&=ü"),
        v4(),
        v4(Action="A", Weird="a b/~"),
        v4("POST", b"Action=A"),
    ],
)
def test_a_signature_of_keystones_signer_is_valid(request_: ec2.Request) -> None:
    assert ec2.access_of(request_) == "key"
    ec2.check(SECRET, request_)
    with pytest.raises(Unauthorized, match="does not match"):
        ec2.check("another", request_)


def changed(request: ec2.Request, **changes: Any) -> ec2.Request:
    return ec2.Request(**{name: changes.get(name, getattr(request, name)) for name in request.__slots__})


@pytest.mark.parametrize(
    "changes",
    [
        {"verb": "PUT"},
        {"path": "/cfn/v1/signal"},
        {"host": "evil.example"},
        {"params": {"Action": "DescribeStackResources"}},
        {"signature": ""},
        {"signature": "é"},
    ],
)
@pytest.mark.parametrize("signed", [v2(Timestamp=TIME), v4()])
def test_any_altered_request_is_refused(signed: ec2.Request, changes: dict[str, Any]) -> None:
    if "params" in changes:
        changes = {"params": {**signed.params, **changes["params"]}}
    with pytest.raises(Unauthorized):
        ec2.check(SECRET, changed(signed, **changes))


def test_version_4_also_signs_the_body() -> None:
    with pytest.raises(Unauthorized):
        ec2.check(SECRET, changed(v4("POST", b"a=1"), body_hash=hashlib.sha256(b"a=2").hexdigest()))


def test_stokers_signature_equals_keystones_and_may_omit_the_port_of_the_host() -> None:
    wanted = v2(Timestamp=TIME)
    assert ec2.sign_v2(SECRET, "GET", wanted.host, wanted.path, wanted.params) == wanted.signature
    without = ec2.sign_v2(SECRET, "GET", "stoker.example", wanted.path, wanted.params)
    ec2.check(SECRET, changed(wanted, signature=without))


@given(
    st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=4),
    st.dictionaries(st.sampled_from(["authorization", "x-amz-date"]), st.text(max_size=30)),
)
def test_invalid_requests_are_refused_with_a_reason(params: dict[str, str], headers: dict[str, str]) -> None:
    request = ec2.Request("GET", "h", "/", params, "x", headers)
    with pytest.raises(Unauthorized):
        ec2.access_of(request)
        ec2.check(SECRET, request)
