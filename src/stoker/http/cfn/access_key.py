"""
Checks that a request's access key exists before the rest of a large body is read.

Otherwise anyone could make Stoker read and hold large bodies.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from stoker.http.access import principal_of
from stoker.http.app import App
from stoker.http.threads import in_thread
from stoker.identity import ec2
from stoker.model.errors import Unauthorized

#: The parameter in a form; signature version 4 appends a scope to the key.
_IN_FORM = re.compile(rb"(?:^|&)(?:AWSAccessKeyId|X-Amz-Credential)=([A-Za-z0-9%._~-]{1,300})(?:&|/|$)")


async def require_known_key(request: Request, start: bytes, app: App) -> None:
    """
    Check that the request's access key exists. The signature is checked later.

    The key is in the headers, the query or ``start``, the beginning of the body. Raises Unauthorized if the request has
    neither an existing key nor a valid token.
    """
    if "x-auth-token" in request.headers:
        await principal_of(request, app)
        return
    access = _access_key(request, start)
    if access is None or not await in_thread(app.keys.may_exist, access):
        raise Unauthorized("The EC2 access key is not valid, or it is not among the first 64 KiB of the request.")


def _access_key(request: Request, start: bytes) -> str | None:
    params = {
        name: request.query_params[name]
        for name in ("AWSAccessKeyId", "X-Amz-Credential", "X-Amz-Date")
        if name in request.query_params
    }
    headers = {name: request.headers[name] for name in ("authorization", "x-amz-date") if name in request.headers}
    try:
        return ec2.access_of(ec2.Request(request.method, "", "", params, "", headers))
    except Unauthorized:
        found = _IN_FORM.search(start)
        return unquote_to_bytes(found[1]).partition(b"/")[0].decode("ascii", "replace") if found else None
