"""Custom constraints that the site's provider checks, with the login of the site or of the caller."""

from __future__ import annotations

from stoker.backends.provider import Constraints
from stoker.http.request import RequestContext


def open_constraints(request: RequestContext) -> Constraints | None:
    """
    Return the checks of one request; None without a provider. Must not be used in a transaction.

    Without a login of the site, values are looked up as the user of the request.
    """
    open_checks = request.app.provider.open_constraints
    return open_checks(request.token, request.project) if open_checks is not None else None
