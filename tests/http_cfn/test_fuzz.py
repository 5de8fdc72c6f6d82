"""Whatever is asked of CloudFormation's API: no 5xx, and every answer is XML or JSON as asked."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.http.cfn.actions import ACTIONS
from support.search import examples
from support.server import Answer, Served, served
from support.signatures import create_key, signed
from support.templates import template

bounded = settings(
    max_examples=examples(50),
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
TEMPLATE = template(
    {"r": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}},
    parameters={"p": {"type": "string", "default": "x"}},
    outputs={"o": {"value": {"get_attr": ["r", "value"]}}},
)
NAMES = [
    *("StackName", "LogicalResourceId", "PhysicalResourceId", "ContentType", "NextToken", "AWSAccessKeyId"),
    *("Signature", "Version", "SignatureVersion", "SignatureMethod", "Timestamp"),
    *("X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires"),
]
WORDS = [
    *("fuzzed", "r", "JSON", "1", "-1", "٣", "true", "{", "[", "💥"),
    *("arn:openstack:heat::p:stacks/fuzzed/x", "arn:", "arn:openstack:heat::::", "\ufffe", "2030-01-01T00:00:00Z"),
]
values = st.sampled_from(WORDS) | st.text(max_size=12)
params = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=6), values, max_size=6)
actions = st.sampled_from([*ACTIONS, "", "NoSuch"])


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("cfn-fuzz")) as running:
        assert running.heat("POST", "/stacks", {"stack_name": "fuzzed", "template": TEMPLATE}).status == 201
        yield running


@pytest.fixture(scope="module")
def key(stoker) -> tuple[str, str]:
    return create_key(stoker.heat)


def sound(answer: Answer) -> Answer:
    assert answer.status < 500, answer.raw
    if answer.headers["Content-Type"] == "application/json":
        json.loads(answer.raw)
    elif answer.raw:
        root = ET.fromstring(answer.raw)
        assert (root.tag == "ErrorResponse") == (answer.status >= 400)
    return answer


@bounded
@given(action=actions, said=params, verb=st.sampled_from(["GET", "POST", "PUT"]))
def test_any_action_with_a_token_is_answered(stoker, action, said, verb):
    query = urlencode({**said, "Action": action}, errors="surrogatepass")
    headers = {"X-Auth-Token": stoker.token}
    if verb == "GET":
        sound(stoker.request("GET", f"/cfn/v1/?{query}", headers=headers))
    else:
        form = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        sound(stoker.request(verb, "/cfn/v1/", query.encode(), form))


@bounded
@given(action=actions, said=params)
def test_any_signed_action_is_answered(stoker, key, action, said):
    said = {
        name.encode(errors="replace").decode(): text for name, text in said.items() if name not in ("", "Signature")
    }
    own = {name: text for name, text in said.items() if not name.startswith(("AWS", "Signature", "X-Amz"))}
    sound(stoker.request("GET", signed(stoker, *key, **{**own, "Action": action})))
    sound(stoker.request("GET", f"/cfn/v1/?{urlencode({**said, 'Action': action}, errors='replace')}"))


@bounded
@given(action=actions, raw=st.lists(st.tuples(st.sampled_from(NAMES), st.binary(max_size=6)), max_size=4))
def test_invalid_text_in_parameters_is_refused(stoker, action, raw):
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in raw if b"\0" not in value)
    headers = {"X-Auth-Token": stoker.token}
    sound(stoker.request("GET", f"/cfn/v1/?Action={action}&{query}", headers=headers))
    form = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
    sound(stoker.request("POST", f"/cfn/v1/?Action={action}", query.encode(), form))


@bounded
@given(
    body=st.binary(max_size=40), kind=st.sampled_from(["application/x-www-form-urlencoded", "application/json", "x"])
)
def test_any_body_is_answered(stoker, body, kind):
    headers = {"X-Auth-Token": stoker.token, "Content-Type": kind}
    sound(stoker.request("POST", "/cfn/v1/?Action=DescribeStackResources", body, headers))


@bounded
@given(
    parts=st.lists(st.text(min_size=1, max_size=6) | st.sampled_from(["arn:openstack:heat::x:stacks", "fuzzed", "r"])),
    verb=st.sampled_from(["POST", "PUT"]),
    below=st.sampled_from(["signal", "waitcondition"]),
    body=st.binary(max_size=20) | st.sampled_from([b'{"Status": "SUCCESS"}', b"[1]", b'{"Status": 5}']),
)
def test_any_signal_url_is_answered(stoker, parts, verb, below, body):
    path = "/".join(quote(part, safe="", errors="replace") for part in parts)
    for place in (path, f"{path}/fuzzed/x/resources/r"):
        answer = stoker.request(verb, f"/cfn/v1/{below}/{place}", body, {"X-Auth-Token": stoker.token})
        assert answer.status < 500, answer.raw


@pytest.mark.parametrize("query", ["Action=DescribeStackResources&StackName=%ff", "Action=%ff", "%ff=1"])
def test_bytes_that_are_not_utf8_are_refused(stoker, query):
    headers = {"X-Auth-Token": stoker.token}
    for answer in (
        stoker.request("GET", f"/cfn/v1/?{query}", headers=headers),
        stoker.request("GET", f"/cfn/v1/?{query}&ContentType=JSON", headers=headers),
    ):
        assert answer.status == 400
        assert "UTF-8" in ET.fromstring(answer.raw).findtext("Error/Message")
