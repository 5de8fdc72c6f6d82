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
from support.signatures import INCOMPLETE, create_key, signed
from support.templates import define, template

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def key(member: Account) -> tuple[str, str]:
    """The EC2 key of an agent: access and secret."""
    return create_key(member)


def form_of(stoker: Served, key: tuple[str, str], **params: str) -> bytes:
    return urlencode(parse_qsl(urlsplit(signed(stoker, *key, verb="POST", **params)).query)).encode()


def test_strangers_cannot_send_large_bodies(stoker):
    """Bodies of 15 MB that never end, signed with a key that nobody has, or with none."""
    queries = [f"?AWSAccessKeyId={secrets.token_hex(16)}", "?X-Amz-Credential=a%2Fb", ""]
    size = 15_000_000

    def attack():
        with ExitStack() as stack:
            connections = [stack.enter_context(connect(stoker)) for _ in range(30)]
            for number, connection in enumerate(connections):
                head = (
                    f"POST /cfn/v1/{queries[number % 3]} HTTP/1.1\r\nContent-Length: {size}\r\n"
                    "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
                )
                send_all(connection, head.encode(), *[b"x=1&" * 50_000] * (size // 200_000 - 1))
            for connection in connections:
                answer = read_answer(connection)
                assert answer.status == 400
                assert b"<Code>RequestLimitExceeded</Code>" in answer.raw

    assert_harmless(stoker, attack)


def test_a_known_key_may_send_a_large_signal(stoker, member):
    handle = define("OS::Heat::WaitConditionHandle", signal_transport="CFN_SIGNAL")
    outputs = {"signal": {"value": {"get_attr": ["h", "signal"]}}}
    stack = member.create_stack(f"cfn-{secrets.token_hex(4)}", template({"h": handle}, outputs=outputs))
    url = json.loads(member.outputs(stack)["signal"])["alarm_url"]
    answer = stoker.request("PUT", url.removeprefix(stoker.url), {"status": "SUCCESS", "data": "x" * 300_000})
    assert answer.status == 200, answer.raw
    assert member.heat("DELETE", stack).status == 204


def test_parameters_may_be_sent_as_a_form_of_at_most_100_fields(stoker, key):
    form = form_of(stoker, key, **INCOMPLETE)
    assert b"LogicalResourceId parameter is missing" in stoker.request("POST", "/cfn/v1/", form, FORM).raw
    fields = b"".join(b"&f%d=x" % number for number in range(101))
    answer = stoker.request("POST", "/cfn/v1/", form + fields, FORM)
    assert answer.status == 400
    assert b"at most 100" in answer.raw


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
