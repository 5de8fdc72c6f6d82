"""Requests signed by the signer of Keystone's client, which os-collect-config uses too."""

from __future__ import annotations

from urllib.parse import urlencode

from keystoneclient.contrib.ec2.utils import Ec2Signer

from support.server import Served


def signed(stoker: Served, access: str, secret: str, verb: str = "GET", path: str = "/cfn/v1/", **params: str) -> str:
    said = {"AWSAccessKeyId": access, "SignatureVersion": "2", "SignatureMethod": "HmacSHA256", **params}
    host = f"127.0.0.1:{stoker.port}"
    signature = Ec2Signer(secret).generate({"verb": verb, "host": host, "path": path, "params": dict(said)})
    return f"{path}?{urlencode({**said, 'Signature': signature})}"
