"""CloudFormation's API: signed by the real signer, asked over HTTP."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from support.server import Answer, Served
from support.signatures import INCOMPLETE, create_key, sign_v4, signed
from support.stacks import needs_provider
from support.templates import config, define, server, template

CFN = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "said in the other syntax",
    "Parameters": {"word": {"Type": "String", "Default": "a", "NoEcho": "true"}},
    "Resources": {"value": {"Type": "OS::Heat::Value", "Properties": {"value": {"Ref": "word"}}}},
    "Outputs": {"it": {"Value": {"Fn::GetAtt": ["value", "value"]}}, "who": {"Value": {"Ref": "AWS::StackId"}}},
}
#: As people are shown it.
SHOWN = {**CFN, "Parameters": {"word": {**CFN["Parameters"]["word"], "Default": "******"}}}


@pytest.fixture(scope="module")
def key(stoker) -> tuple[str, str]:
    return create_key(stoker)


def call(stoker: Served, **params: str) -> Answer:
    """The answer to a person, who has a token."""
    return stoker.request("GET", f"/cfn/v1/?{urlencode(params)}", headers={"X-Auth-Token": stoker.token})


def ask(stoker: Served, action: str, **params: str) -> Any:
    """The result, from JSON; XML is held against it."""
    said = {"Action": action, **params}
    answer = call(stoker, ContentType="JSON", **said)
    assert answer.status == 200, answer.raw
    root = ET.fromstring(call(stoker, **said).raw)
    assert root.tag == f"{action}Response"
    assert root[0].tag == f"{action}Result"
    return answer.body[f"{action}Response"][f"{action}Result"]


def fault(answer: Answer) -> tuple[int, str]:
    root = ET.fromstring(answer.raw)
    assert root.tag == "ErrorResponse"
    assert root.findtext("Error/Message")
    return answer.status, root.findtext("Error/Code") or ""


def test_the_resources_of_a_stack_are_described(stoker) -> None:
    value = define("OS::Heat::Value", value="a")
    path = stoker.create_stack("cradle", template({"value": value}))
    made = path.rpartition("/")[2]
    arn = f"arn:openstack:heat::{stoker.project}:stacks/cradle/{made}"
    for ref in ("cradle", made, arn):
        [resource] = ask(stoker, "DescribeStackResources", StackName=ref)["StackResources"]
        assert (resource["StackId"], resource["StackName"]) == (arn, "cradle")
        assert (resource["LogicalResourceId"], resource["ResourceStatus"]) == ("value", "CREATE_COMPLETE")
    physical = resource["PhysicalResourceId"]
    assert ask(stoker, "DescribeStackResources", PhysicalResourceId=physical)["StackResources"] == [resource]
    for name, described in (("value", [resource]), ("other", [])):
        answer = ask(stoker, "DescribeStackResources", StackName=arn, LogicalResourceId=name)
        assert answer["StackResources"] == described
    detail = ask(stoker, "DescribeStackResource", StackName=arn, LogicalResourceId="value")["StackResourceDetail"]
    assert detail["PhysicalResourceId"] == physical
    assert stoker.heat("DELETE", path).status == 204
    gone = call(stoker, Action="DescribeStackResources", StackName="cradle")
    assert fault(gone) == (400, "InvalidParameterValue")


@pytest.mark.parametrize(
    ("params", "status", "code"),
    [
        ({}, 400, "MissingAction"),
        ({"Action": "Fly"}, 400, "InvalidAction"),
        ({"Action": "CreateStack", "StackName": "a"}, 400, "InvalidAction"),
        ({"Action": "DescribeStackResource"}, 400, "MissingParameter"),
        ({"Action": "DescribeStackResource", "StackName": "x", "LogicalResourceId": "y"}, 400, "InvalidParameterValue"),
        ({"Action": "DescribeStackResources", "StackName": "arn:nonsense"}, 400, "InvalidParameterValue"),
        ({"Action": "DescribeStackResources"}, 400, "InvalidParameterCombination"),
        ({**INCOMPLETE, "x": "\0"}, 400, "InvalidParameterValue"),
    ],
)
def test_errors_have_amazons_codes(stoker, params, status, code) -> None:
    assert fault(call(stoker, **params)) == (status, code)


def test_unauthenticated_requests_are_refused(stoker, key) -> None:
    action = f"/cfn/v1/?{urlencode(INCOMPLETE)}"
    wrong = signed(stoker, key[0], "wrong", **INCOMPLETE)
    unknown = signed(stoker, "0" * 32, "wrong", **INCOMPLETE)
    assert fault(stoker.request("GET", wrong)) == (403, "AccessDenied")
    assert fault(stoker.request("GET", unknown)) == (403, "AccessDenied")
    assert fault(stoker.request("GET", action)) == (400, "IncompleteSignature")
    assert fault(stoker.request("GET", f"{action}&Signature=x")) == (403, "MissingAuthenticationToken")
    assert fault(stoker.request("GET", "/cfn/v1/nothing")) == (404, "InvalidAction")
    headers = {"X-Auth-Token": stoker.token}
    assert fault(stoker.request("GET", action, headers=headers)) == (400, "MissingParameter")
    assert stoker.request("GET", "/cfn").status == 300


def test_a_signature_of_version_4_is_accepted(stoker, key) -> None:
    access, secret = key
    headers = sign_v4(f"127.0.0.1:{stoker.port}", access, secret, INCOMPLETE, datetime.now(UTC))
    path = "/cfn/v1/?Action=DescribeStackResource&StackName="
    assert stoker.request("GET", f"{path}unknown", headers=headers).status == 400
    assert stoker.request("GET", f"{path}other", headers=headers).status == 403


@needs_provider
def test_heats_api_accepts_templates_of_both_syntaxes(stoker) -> None:
    path = stoker.create_stack("heats", CFN)
    stack = stoker.stack(path)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert stack["parameters"]["AWS::StackName"] == "heats"
    assert stoker.heat("GET", f"{path}/template").body == SHOWN
    shown = stoker.heat("POST", "/validate", {"template": CFN}).body
    assert shown["Parameters"]["word"]["Type"] == "String"
    versions = {each["version"] for each in stoker.heat("GET", "/template_versions").body["template_versions"]}
    assert {"AWSTemplateFormatVersion.2010-09-09", "HeatTemplateFormatVersion.2012-12-12"} <= versions
    functions = stoker.heat("GET", "/template_versions/HeatTemplateFormatVersion.2012-12-12/functions").body
    assert {"Ref", "Fn::FindInMap", "Fn::Select"} <= {each["functions"] for each in functions["template_functions"]}


def test_metadata_with_characters_outside_xml_is_returned(stoker) -> None:
    resources = {
        "server": {**server("odd"), "metadata": {"odd": "\x01<&>\ufffe", "key with <": 1}},
        "c": config("\x02"),
    }
    stoker.create_stack("odd", template(resources))
    root = ET.fromstring(call(stoker, Action="DescribeStackResource", StackName="odd", LogicalResourceId="server").raw)
    detail = root.find("DescribeStackResourceResult/StackResourceDetail")
    metadata = json.loads(detail.findtext("Metadata"))
    assert metadata["odd"] == "\x01<&>\ufffe"
    assert metadata["deployments"] == []


@pytest.mark.parametrize("query", ["Action=DescribeStackResources&StackName=%ff", "Action=%ff", "%ff=1"])
def test_bytes_that_are_not_utf8_are_refused(stoker, query):
    headers = {"X-Auth-Token": stoker.token}
    for answer in (
        stoker.request("GET", f"/cfn/v1/?{query}", headers=headers),
        stoker.request("GET", f"/cfn/v1/?{query}&ContentType=JSON", headers=headers),
    ):
        assert answer.status == 400
        assert "UTF-8" in ET.fromstring(answer.raw).findtext("Error/Message")
