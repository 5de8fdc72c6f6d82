"""The ways in which callers authenticate, as the OpenAPI document names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.http.access import (
    Access,
    AgentKey,
    CallToken,
    MaySignalDeployment,
    MetricsToken,
    Public,
    RelayKey,
    Signed,
)
from stoker.http.messaging.access import QueueAccess
from stoker.http.objects.access import TokenOrSignature

SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
    "agentKey": {"type": "http", "scheme": "bearer", "description": "The key of an enrolled server"},
    "relayKey": {"type": "http", "scheme": "bearer", "description": "The key of a relay"},
    "metricsToken": {"type": "http", "scheme": "bearer", "description": "The site's metrics_token"},
    "ec2Signature": {"type": "apiKey", "in": "query", "name": "Signature", "description": "AWS signature 2 or 4"},
    "urlSignature": {"type": "apiKey", "in": "header", "name": "URL-Signature", "description": "A signed queue URL"},
    "tempUrl": {"type": "apiKey", "in": "query", "name": "temp_url_sig", "description": "A signed object URL"},
}
#: Access rules that admit other credentials than a token.
_BY_RULE: Mapping[type[Access], tuple[str, ...]] = {
    Public: (),
    CallToken: (),
    AgentKey: ("agentKey",),
    RelayKey: ("relayKey",),
    MetricsToken: ("token", "metricsToken"),
    MaySignalDeployment: ("token", "agentKey"),
    Signed: ("ec2Signature", "token"),
    QueueAccess: ("token", "urlSignature"),
    TokenOrSignature: ("token", "tempUrl"),
}


def schemes_of(access: Access) -> tuple[str, ...]:
    """Return the names of the schemes of which a request to the route needs one. Empty: none is needed."""
    return _BY_RULE.get(type(access), ("token",))
