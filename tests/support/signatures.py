"""Requests signed by the signer of Keystone's client, which os-collect-config uses too."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from keystoneclient.contrib.ec2.utils import Ec2Signer

from support.server import Served


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
