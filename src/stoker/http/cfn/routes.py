"""The table of CloudFormation's API. Who asks is found from parameters and body, so the handlers ask for it."""

from __future__ import annotations

from stoker.http.access import Public
from stoker.http.call import Call, Reply, Route
from stoker.http.cfn import polling, query, signals

_V1 = "/cfn/v1"
_ARN = "/{arn}/{stack_name}/{stack_id}/resources/{resource_name}"
_TEMPLATE_LIMIT = 16 * 1024 * 1024


def versions(call: Call) -> Reply:
    url = f"{call.services.settings.public_url}{_V1}/"
    return Reply(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": url}]}]})


ROUTES = [
    Route("GET", _V1, Public(), polling.poll),
    Route("POST", _V1, Public(), query.act, _TEMPLATE_LIMIT),
    Route("PUT", _V1, Public(), query.act, _TEMPLATE_LIMIT),
    Route("GET", "/cfn", Public(), versions),
    Route("POST", f"{_V1}/signal{_ARN}", Public(), signals.signal),
    Route("PUT", f"{_V1}/waitcondition{_ARN}", Public(), signals.wait_condition),
]
