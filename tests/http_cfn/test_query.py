"""CloudFormation's API: signed by the real signer, asked over HTTP."""

from __future__ import annotations

import json
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from keystoneclient.contrib.ec2.utils import Ec2Signer

from support.server import Answer, Served, served
from support.signatures import signed
from support.templates import config, server, template

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
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("cfn")) as running:
        yield running


@pytest.fixture(scope="module")
def key(stoker) -> dict[str, str]:
    me = stoker.request("GET", "/identity/v3/auth/tokens", headers=tokens(stoker)).body["token"]["user"]["id"]
    made = stoker.request("POST", f"/identity/v3/users/{me}/credentials/OS-EC2", {}, tokens(stoker))
    assert made.status == 201, made.raw
    return made.body["credential"]


def tokens(stoker: Served) -> dict[str, str]:
    return {"X-Auth-Token": stoker.token, "X-Subject-Token": stoker.token}


def ask(stoker: Served, key: dict[str, str], action: str, **params: str) -> Any:
    """The result, from JSON; XML is held against it."""
    said = {"Action": action, **params}
    answer = stoker.request("GET", signed(stoker, key["access"], key["secret"], ContentType="JSON", **said))
    assert answer.status == 200, answer.raw
    plain = stoker.request("GET", signed(stoker, key["access"], key["secret"], **said))
    if action.startswith(("List", "Describe", "Get")):
        root = ET.fromstring(plain.raw)
        assert root.tag == f"{action}Response"
        assert root[0].tag == f"{action}Result"
    return answer.body[f"{action}Response"][f"{action}Result"]


def fault(answer: Answer) -> tuple[int, str]:
    root = ET.fromstring(answer.raw)
    assert root.tag == "ErrorResponse"
    assert root.findtext("Error/Message")
    return answer.status, root.findtext("Error/Code") or ""


def test_a_stack_is_created_updated_and_deleted(stoker, key) -> None:
    access, secret = key["access"], key["secret"]
    body = {
        "Action": "CreateStack",
        "StackName": "cradle",
        "TemplateBody": json.dumps(CFN),
        "Parameters.member.1.ParameterKey": "word",
        "Parameters.member.1.ParameterValue": "b",
        "TimeoutInMinutes": "5",
        "OnFailure": "DO_NOTHING",
    }
    made = stoker.request("POST", signed(stoker, access, secret, "POST", **body))
    assert made.status == 200, made.raw
    arn = ET.fromstring(made.raw).findtext("CreateStackResult/StackId")
    assert arn.startswith(f"arn:openstack:heat::{stoker.project}:stacks/cradle/")
    [shown] = ask(stoker, key, "DescribeStacks", StackName=arn)["Stacks"]
    assert shown["StackStatus"] == "CREATE_COMPLETE"
    assert shown["TimeoutInMinutes"] == 5
    assert shown["DisableRollback"] is True
    assert {"ParameterKey": "word", "ParameterValue": "******"} in shown["Parameters"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in shown["Outputs"]}
    assert outputs == {"it": "******", "who": arn}, "a hidden parameter is hidden in outputs, too"
    assert ask(stoker, key, "GetTemplate", StackName="cradle")["TemplateBody"] == SHOWN
    xml = stoker.request("GET", signed(stoker, access, secret, Action="GetTemplate", StackName="cradle"))
    assert json.loads(ET.fromstring(xml.raw).findtext("GetTemplateResult/TemplateBody")) == SHOWN
    [resource] = ask(stoker, key, "ListStackResources", StackName="cradle")["StackResourceSummaries"]
    assert resource["LogicalResourceId"] == "value"
    [resource] = ask(stoker, key, "DescribeStackResources", PhysicalResourceId=resource["PhysicalResourceId"])[
        "StackResources"
    ]
    assert resource["StackName"] == "cradle"
    events = ask(stoker, key, "DescribeStackEvents", StackName="cradle")["StackEvents"]
    assert {each["ResourceStatus"] for each in events} >= {"CREATE_IN_PROGRESS", "CREATE_COMPLETE"}
    updated = {**body, "Action": "UpdateStack", "Parameters.member.1.ParameterValue": "c"}
    assert stoker.request("POST", signed(stoker, access, secret, "POST", **updated)).status == 200
    [shown] = ask(stoker, key, "DescribeStacks", StackName="cradle")["Stacks"]
    assert shown["StackStatus"] == "UPDATE_COMPLETE"
    assert shown["LastUpdatedTime"]
    assert "cradle" in {each["StackName"] for each in ask(stoker, key, "ListStacks")["StackSummaries"]}
    assert ask(stoker, key, "DeleteStack", StackName="cradle") == ""
    gone = stoker.request("GET", signed(stoker, access, secret, Action="DescribeStacks", StackName="cradle"))
    assert fault(gone) == (400, "InvalidParameterValue")


def test_validation_returns_the_parameters_or_the_error(stoker, key) -> None:
    said = ask(stoker, key, "ValidateTemplate", TemplateBody=json.dumps(CFN))
    assert said["Description"] == "said in the other syntax"
    assert said["Parameters"] == [{"ParameterKey": "word", "DefaultValue": "a", "Description": "", "NoEcho": "true"}]
    assert "Invalid keyword" in ask(
        stoker, key, "ValidateTemplate", TemplateBody=json.dumps({**CFN, "Resources": {"a": {"type": "x"}}})
    )


def test_parameters_may_be_sent_as_a_form(stoker, key) -> None:
    said = {"Action": "ListStacks", "ContentType": "JSON"}
    url = signed(stoker, key["access"], key["secret"], "POST", **said)
    path, _, query = url.partition("?")
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    request = urllib.request.Request(stoker.url + path, query.encode(), headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        assert "ListStacksResponse" in json.load(answer)


@pytest.mark.parametrize(
    ("params", "status", "code"),
    [
        ({}, 400, "MissingAction"),
        ({"Action": "Fly"}, 400, "InvalidAction"),
        ({"Action": "DescribeStackResource"}, 400, "MissingParameter"),
        ({"Action": "DescribeStackResource", "StackName": "x", "LogicalResourceId": "y"}, 400, "InvalidParameterValue"),
        ({"Action": "DescribeStacks", "StackName": "arn:nonsense"}, 400, "InvalidParameterValue"),
        ({"Action": "DescribeStackResources"}, 400, "InvalidParameterCombination"),
        ({"Action": "CreateStack", "StackName": "9"}, 400, "InvalidParameterValue"),
        ({"Action": "CreateStack", "StackName": "a"}, 400, "MissingParameter"),
        ({"Action": "CreateStack", "StackName": "a", "TemplateBody": "[]"}, 400, "InvalidParameterValue"),
        (
            {"Action": "CreateStack", "StackName": "a", "TemplateBody": "{}", "OnFailure": "x"},
            400,
            "InvalidParameterValue",
        ),
        ({"Action": "ListStacks", "x": "\0"}, 400, "InvalidParameterValue"),
    ],
)
def test_errors_have_amazons_codes(stoker, key, params, status, code) -> None:
    answer = stoker.request("GET", signed(stoker, key["access"], key["secret"], **params))
    assert fault(answer) == (status, code)


def test_unauthenticated_requests_are_refused(stoker, key) -> None:
    wrong = signed(stoker, key["access"], "wrong", Action="ListStacks")
    unknown = signed(stoker, "0" * 32, "wrong", Action="ListStacks")
    assert fault(stoker.request("GET", wrong)) == (403, "AccessDenied")
    assert fault(stoker.request("GET", unknown)) == (403, "AccessDenied")
    assert fault(stoker.request("GET", "/cfn/v1/?Action=ListStacks")) == (400, "IncompleteSignature")
    assert fault(stoker.request("GET", "/cfn/v1/?Action=ListStacks&Signature=x")) == (403, "MissingAuthenticationToken")
    assert fault(stoker.request("GET", "/cfn/v1/nothing")) == (404, "InvalidAction")
    headers = {"X-Auth-Token": stoker.token}
    assert stoker.request("GET", "/cfn/v1/?Action=ListStacks", headers=headers).status == 200
    assert stoker.request("GET", "/cfn").status == 300


def test_a_deleted_key_is_refused(stoker) -> None:
    me = stoker.request("GET", "/identity/v3/auth/tokens", headers=tokens(stoker)).body["token"]["user"]["id"]
    path = f"/identity/v3/users/{me}/credentials/OS-EC2"
    key = stoker.request("POST", path, {"tenant_id": stoker.project}, tokens(stoker)).body["credential"]
    assert key["tenant_id"] == stoker.project
    listed = stoker.request("GET", path, headers=tokens(stoker)).body["credentials"]
    hidden = {**key, "secret": None}
    assert hidden in listed
    assert stoker.request("GET", f"{path}/{key['access']}", headers=tokens(stoker)).body["credential"] == hidden
    url = signed(stoker, key["access"], key["secret"], Action="ListStacks")
    assert stoker.request("GET", url).status == 200
    assert stoker.request("DELETE", f"{path}/{key['access']}", headers=tokens(stoker)).status == 204
    assert stoker.request("GET", url).status == 403
    assert stoker.request("GET", f"{path}/{key['access']}", headers=tokens(stoker)).status == 404
    refused = stoker.request("POST", path, {"tenant_id": "nobody's"}, tokens(stoker))
    assert refused.status == 400


def test_a_signed_request_is_exchanged_for_a_token(stoker, key) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    params = {"AWSAccessKeyId": key["access"], "SignatureVersion": "2", "Action": "x", "Timestamp": now}
    asked = {"verb": "GET", "host": "h", "path": "/v1/", "params": params}
    signature = Ec2Signer(key["secret"]).generate({**asked, "params": dict(params)})
    params["SignatureMethod"] = "HmacSHA256"
    body = {"ec2Credentials": {**asked, "access": key["access"], "signature": signature, "headers": {}}}
    answer = stoker.request("POST", "/identity/v3/ec2tokens", body, tokens(stoker))
    assert answer.status == 200, answer.raw
    assert answer.body["token"]["project"]["id"] == stoker.project
    got = answer.headers["X-Subject-Token"]
    assert stoker.request("GET", f"/v1/{stoker.project}/stacks", headers={"X-Auth-Token": got}).status == 200
    body["ec2Credentials"]["signature"] = "wrong"
    assert stoker.request("POST", "/identity/v3/ec2tokens", body, tokens(stoker)).status == 401
    assert stoker.request("POST", "/identity/v3/ec2tokens", body).status == 401
    for said in ({}, {"ec2Credentials": []}, {"ec2Credentials": {"access": key["access"], "signature": 1}}):
        assert stoker.request("POST", "/identity/v3/ec2tokens", said, tokens(stoker)).status in (400, 401)


def test_heats_api_accepts_templates_of_both_syntaxes(stoker) -> None:
    made = stoker.heat("POST", "/stacks", {"stack_name": "heats", "template": CFN})
    assert made.status == 201, made.raw
    id = made.body["stack"]["id"]
    stack = stoker.heat("GET", f"/stacks/heats/{id}").body["stack"]
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert stack["parameters"]["AWS::StackName"] == "heats"
    assert stoker.heat("GET", f"/stacks/heats/{id}/template").body == SHOWN
    shown = stoker.heat("POST", "/validate", {"template": CFN}).body
    assert shown["Parameters"]["word"]["Type"] == "String"
    versions = {each["version"] for each in stoker.heat("GET", "/template_versions").body["template_versions"]}
    assert {"AWSTemplateFormatVersion.2010-09-09", "HeatTemplateFormatVersion.2012-12-12"} <= versions
    functions = stoker.heat("GET", "/template_versions/HeatTemplateFormatVersion.2012-12-12/functions").body
    assert {"Ref", "Fn::FindInMap", "Fn::Select"} <= {each["functions"] for each in functions["template_functions"]}


def test_metadata_with_characters_outside_xml_is_returned(stoker, key) -> None:
    resources = {
        "server": {**server("odd"), "metadata": {"odd": "\x01<&>\ufffe", "key with <": 1}},
        "c": config("\x02"),
    }
    made = stoker.heat("POST", "/stacks", {"stack_name": "odd", "template": template(resources)})
    assert made.status == 201, made.raw
    asked = signed(
        stoker,
        key["access"],
        key["secret"],
        Action="DescribeStackResource",
        StackName="odd",
        LogicalResourceId="server",
    )
    root = ET.fromstring(stoker.request("GET", asked).raw)
    detail = root.find("DescribeStackResourceResult/StackResourceDetail")
    metadata = json.loads(detail.findtext("Metadata"))
    assert metadata["odd"] == "\x01<&>\ufffe"
    assert metadata["deployments"] == []
