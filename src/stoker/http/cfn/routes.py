"""Routes of the CloudFormation API."""

from __future__ import annotations

from typing import Any

from stoker.http.access import Public, Signed
from stoker.http.cfn import metadata, query, signals
from stoker.http.cfn.access import require_known_key
from stoker.http.contracts import operation
from stoker.http.request_context import BODY_LIMIT, RequestContext, Response, Route

_V1 = "/cfn/v1"
_ARN = "/{arn}/{stack_name}/{stack_id}/resources/{resource_name}"
_TEMPLATE_LIMIT = 16 * 1024 * 1024
_SIGNED = Signed()


@operation(300, {"versions": list[dict[str, Any]]})
def versions(request: RequestContext) -> Response:
    """List the versions of the API."""
    url = f"{request.app.settings.public_url}{_V1}/"
    return Response(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": url}]}]})


ROUTES = [
    Route("GET", _V1, _SIGNED, metadata.poll),
    Route("POST", _V1, _SIGNED, query.act, _TEMPLATE_LIMIT, require_known_key),
    Route("PUT", _V1, _SIGNED, query.act, _TEMPLATE_LIMIT, require_known_key),
    Route("GET", "/cfn", Public(), versions),
    Route("POST", f"{_V1}/signal{_ARN}", _SIGNED, signals.signal, BODY_LIMIT, require_known_key),
    Route("PUT", f"{_V1}/waitcondition{_ARN}", _SIGNED, signals.wait_condition, BODY_LIMIT, require_known_key),
]
