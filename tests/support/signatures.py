"""Requests signed by the signer of Keystone's client, which os-collect-config uses too."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from keystoneclient.contrib.ec2.utils import Ec2Signer

from support.server import HeatClient, Served
from support.templates import server, template

#: The parameters of an action that is answered with 400 if the caller is authenticated, otherwise with 403.
INCOMPLETE = {"Action": "DescribeStackResource", "StackName": "unknown"}


def create_key(client: HeatClient) -> tuple[str, str]:
    """Create a stack with a server. Return the access key and secret of its agent."""
    name = f"signs-{uuid.uuid4().hex[:8]}"
    machine = server(name, software_config_transport="POLL_SERVER_CFN")
    outputs = {"agent": {"value": {"get_attr": ["server", "os_collect_config"]}}}
    stack = client.create_stack(name, template({"server": machine}, outputs=outputs))
    agent = client.outputs(stack)["agent"]
    return agent["cfn"]["access_key_id"], agent["cfn"]["secret_access_key"]


def signed(
    stoker: Served, access: str, secret: str, verb: str = "GET", path: str = "/cfn/v1/", **params: str | None
) -> str:
    """Return the signed query. ``Timestamp`` defaults to now; a parameter with the value None is omitted."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fixed = {"AWSAccessKeyId": access, "SignatureVersion": "2", "SignatureMethod": "HmacSHA256", "Timestamp": now}
    values = {name: value for name, value in {**fixed, **params}.items() if value is not None}
    host = f"127.0.0.1:{stoker.port}"
    signature = Ec2Signer(secret).generate({"verb": verb, "host": host, "path": path, "params": dict(values)})
    return f"{path}?{urlencode({**values, 'Signature': signature})}"


def sign_v4(
    host: str, access: str, secret: str, params: Mapping[str, str], at: datetime, verb: str = "GET", body: bytes = b""
) -> dict[str, str]:
    """Return the headers of a request that is signed in version 4."""
    day = at.strftime("%Y%m%dT%H%M%SZ")
    scope = f"Credential={access}/{day[:8]}/here/heat/aws4_request"
    signature = f"AWS4-HMAC-SHA256 {scope},SignedHeaders=host;x-amz-date,Signature="
    headers = {"Host": host, "X-Amz-Date": day, "Authorization": signature}
    request = {"verb": verb, "host": host, "path": "/cfn/v1/", "params": dict(params), "headers": headers}
    signature += Ec2Signer(secret).generate({**request, "body_hash": hashlib.sha256(body).hexdigest()})
    return {**headers, "Authorization": signature}
