"""Heat's CloudFormation API, which os-collect-config, heat-cfntools and pre-signed URLs use: its routes."""

from __future__ import annotations

from typing import Any

from stoker.http.access import PUBLIC, SIGNED
from stoker.http.api import Api, Route
from stoker.http.cfn import actions, signals
from stoker.http.cfn.serialize import render
from stoker.http.contracts import operation
from stoker.http.request import RequestContext

_V1 = "/cfn/v1"
_ARN = "/{arn}/{stack_name}/{stack_id}/resources/{resource_name}"
_FORM_LIMIT = 64 * 1024


@operation(300)
def versions(request: RequestContext) -> dict[str, Any]:
    url = f"{request.app.settings.public_url}{_V1}/"
    return {"versions": [{"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": url}]}]}


ROUTES = [
    Route("GET", _V1, SIGNED, actions.poll),
    Route("POST", _V1, SIGNED, actions.act, _FORM_LIMIT),
    Route("PUT", _V1, SIGNED, actions.act, _FORM_LIMIT),
    Route("GET", "/cfn", PUBLIC, versions),
    Route("POST", f"{_V1}/signal{_ARN}", SIGNED, signals.signal),
    Route("PUT", f"{_V1}/waitcondition{_ARN}", SIGNED, signals.wait_condition),
]

API = Api("cfn", ROUTES, render)
