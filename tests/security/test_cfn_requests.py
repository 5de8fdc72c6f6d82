"""Attacks on CloudFormation's API, which finds out who asks from what is sent."""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from support.accounts import Account
from support.availability import assert_harmless
from support.raw import connect, read_answer, send_all
from support.server import Served
from support.signatures import signed

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def key(member: Account) -> tuple[str, str]:
    """An EC2 key of the member's: access and secret."""
    path = f"/identity/v3/users/{member.user_id}/credentials/OS-EC2"
    made = member.request("POST", path, {"tenant_id": member.project}).body["credential"]
    return made["access"], made["secret"]


def post(stoker: Served, body: bytes, headers: dict[str, str] = FORM):
    return stoker.request("POST", "/cfn/v1/", body, headers)


def form_of(stoker: Served, key: tuple[str, str], **params: str) -> bytes:
    return urlencode(parse_qsl(urlsplit(signed(stoker, *key, verb="POST", **params)).query)).encode()


def test_only_known_keys_may_send_large_bodies(stoker):
    """Forms that never end, and forms of 15 MB, signed with a key that nobody has, or with none."""
    head = (
        b"POST /cfn/v1/ HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 15000000\r\n\r\n"
    )
    starts = [b"AWSAccessKeyId=%s&" % secrets.token_hex(16).encode(), b"X-Amz-Credential=a%2Fb&", b"a=b&"]

    def attack():
        with ExitStack() as stack:
            connections = [stack.enter_context(connect(stoker)) for _ in range(30)]
            for number, connection in enumerate(connections):
                send_all(connection, head + starts[number % 3], *[b"x=1&" * (MIB // 4)] * 14)
            for connection in connections:
                answer = read_answer(connection)
                assert answer.status == 403
                assert b"<Code>AccessDenied</Code>" in answer.raw

    assert_harmless(stoker, attack)


def test_only_known_keys_may_send_many_fields(stoker, member, key):
    fields = b"&".join(b"f%d=x" % number for number in range(101))
    for start in (b"AWSAccessKeyId=%s&" % secrets.token_hex(16).encode(), b""):
        answer = post(stoker, start + fields)
        assert answer.status == 403, answer.raw
    answer = post(stoker, b"AWSAccessKeyId=%s&" % key[0].encode() + fields)
    assert b"is not signed" in answer.raw
    assert post(stoker, fields, {**FORM, "X-Auth-Token": "wrong"}).status == 403
    answer = post(stoker, fields, {**FORM, "X-Auth-Token": member.token})
    assert b"MissingAction" in answer.raw


def test_a_known_key_may_send_a_large_template_and_many_parameters(stoker, member, key):
    parameters = {f"p{number}": {"Type": "String"} for number in range(60)}
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "x" * 1000,
        "Parameters": parameters,
        "Resources": {"a": {"Type": "OS::Heat::Value", "Properties": {"value": 1}, "Metadata": {"x": "y" * 300_000}}},
    }
    body = form_of(stoker, key, Action="ValidateTemplate", TemplateBody=json.dumps(template))
    answer = post(stoker, body)
    assert answer.status == 200, answer.raw[:500]
    name = f"cfn-{secrets.token_hex(4)}"
    params = {"Action": "CreateStack", "StackName": name, "TemplateBody": json.dumps(template)}
    for number in range(60):
        params[f"Parameters.member.{number + 1}.ParameterKey"] = f"p{number}"
        params[f"Parameters.member.{number + 1}.ParameterValue"] = "v"
    answer = post(stoker, form_of(stoker, key, **params))
    assert answer.status == 200, answer.raw[:500]
    stack = member.request("GET", f"/v1/{member.project}/stacks?name={name}").body["stacks"][0]
    assert member.heat("DELETE", f"/stacks/{name}/{stack['id']}").status == 204


def test_unauthenticated_long_polls_are_harmless(stoker):
    """Queries of 15 KB, signed with a key that nobody has: parsed and signed four times each."""
    more = "&".join(f"p{number}=x" for number in range(1500))
    query = f"Action=DescribeStackResource&AWSAccessKeyId={secrets.token_hex(16)}&StackName=a&LogicalResourceId=b"
    query += f"&SignatureVersion=2&Signature=x&{more}"

    def ask() -> None:
        with suppress(ConnectionError):
            for _ in range(20):
                assert stoker.request("GET", f"/cfn/v1/?{query}").status in (400, 403, 429)

    def attack():
        with ThreadPoolExecutor(10) as pool:
            for each in [pool.submit(ask) for _ in range(10)]:
                each.result()

    assert_harmless(stoker, attack)
