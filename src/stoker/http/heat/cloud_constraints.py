"""Custom constraints that the site's cloud checks, with the login of the site or of the caller."""

from __future__ import annotations

from stoker.backends.cloud.constraints import CloudConstraints
from stoker.http.request_context import RequestContext


def open_constraints(request: RequestContext) -> CloudConstraints | None:
    """
    Return the checks of one request; None without a cloud. Must not be used in a transaction.

    Without a login of the site, values are looked up as the user of the request.
    """
    credentials = request.app.cloud_credentials
    if credentials is None:
        return None
    token, project_id = request.token, request.project
    return CloudConstraints(lambda: credentials.open_project(token, project_id))
