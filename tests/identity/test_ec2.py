"""Signatures, held against the signer that os-collect-config and Heat use."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keystoneclient.contrib.ec2.utils import Ec2Signer

from stoker.identity import ec2
from stoker.model.errors import Unauthorized

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SECRET = "s3cret"


def v2(**params: str) -> ec2.Request:
    said = {"AWSAccessKeyId": "key", "SignatureVersion": "2", "Action": "DescribeStackResource", **params}
    signed = {"verb": "GET", "host": "Stoker.example:8004", "path": "/cfn/v1/", "params": said}
    signature = Ec2Signer(SECRET).generate({**signed, "params": dict(said)})
    said = {"SignatureMethod": "HmacSHA256", **said}
    return ec2.Request("GET", "Stoker.example:8004", "/cfn/v1/", said, signature)


def v4(verb: str = "GET", body: bytes = b"", **params: str) -> ec2.Request:
    headers = {
        "Host": "stoker.example:8004",
        "X-Amz-Date": "20260304T050607Z",
        "Authorization": "AWS4-HMAC-SHA256 Credential=key/20260304/here/heat/aws4_request,"
        "SignedHeaders=host;x-amz-date,Signature=",
    }
    hashed = hashlib.sha256(body).hexdigest()
    signature = Ec2Signer(SECRET).generate(
        {
            "verb": verb,
            "host": "stoker.example:8004",
            "path": "/cfn/v1/",
            "params": dict(params),
            "headers": headers,
            "body_hash": hashed,
        }
    )
    lower = {name.lower(): value for name, value in headers.items()}
    lower["authorization"] += signature
    return ec2.Request(verb, "stoker.example:8004", "/cfn/v1/", params, signature, lower, hashed)


@pytest.mark.parametrize(
    "request_", [v2(), v2(Weird="a b/~*+&=ü"), v4(), v4(Action="A", Weird="a b/~"), v4("POST", b"Action=A")]
)
def test_what_the_real_signer_signs_is_taken(request_: ec2.Request) -> None:
    assert ec2.access_of(request_) == "key"
    ec2.check(SECRET, request_, NOW)
    with pytest.raises(Unauthorized, match="does not match"):
        ec2.check("another", request_, NOW)


def test_our_own_signature_is_the_real_ones() -> None:
    wanted = v2(Timestamp="2026-03-04T05:06:07Z")
    assert ec2.signed_v2(SECRET, "GET", wanted.host, wanted.path, wanted.params) == wanted.signature


def changed(request: ec2.Request, **changes: Any) -> ec2.Request:
    return ec2.Request(**{name: changes.get(name, getattr(request, name)) for name in request.__slots__})


@pytest.mark.parametrize(
    "changes",
    [
        {"verb": "PUT"},
        {"path": "/cfn/v1/signal"},
        {"host": "evil.example"},
        {"params": {"Action": "DeleteStack"}},
        {"signature": ""},
        {"signature": "é"},
    ],
)
@pytest.mark.parametrize("signed", [v2(), v4()])
def test_whatever_is_changed_is_refused(signed: ec2.Request, changes: dict[str, Any]) -> None:
    if "params" in changes:
        changes = {"params": {**signed.params, **changes["params"]}}
    with pytest.raises(Unauthorized):
        ec2.check(SECRET, changed(signed, **changes), NOW)


def test_version_4_signs_the_body_too() -> None:
    with pytest.raises(Unauthorized):
        ec2.check(SECRET, changed(v4("POST", b"a=1"), body_hash=hashlib.sha256(b"a=2").hexdigest()), NOW)


@pytest.mark.parametrize("minutes", [-16, 16])
@pytest.mark.parametrize("signed", [v2(Timestamp="2026-03-04T05:06:07Z"), v4()])
def test_old_ones_are_refused_where_they_age(signed: ec2.Request, minutes: int) -> None:
    then = NOW + timedelta(minutes=minutes)
    ec2.check(SECRET, signed, NOW + timedelta(minutes=minutes / 4))
    ec2.check(SECRET, signed, then, aging=False)
    with pytest.raises(Unauthorized, match="too old"):
        ec2.check(SECRET, signed, then)


def test_without_a_time_it_does_not_age() -> None:
    ec2.check(SECRET, v2(), NOW + timedelta(days=1000))


def test_a_port_may_be_left_out_of_what_is_signed() -> None:
    request = v2()
    without = ec2.signed_v2(SECRET, "GET", "stoker.example", "/cfn/v1/", request.params)
    ec2.check(SECRET, changed(request, signature=without), NOW)


@given(
    st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=4),
    st.dictionaries(st.sampled_from(["authorization", "x-amz-date"]), st.text(max_size=30)),
)
def test_nonsense_is_refused_in_words(params: dict[str, str], headers: dict[str, str]) -> None:
    request = ec2.Request("GET", "h", "/", params, "x", headers)
    with pytest.raises(Unauthorized):
        ec2.access_of(request)
        ec2.check(SECRET, request, NOW)
