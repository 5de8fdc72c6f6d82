"""An API: its routes, the format of its errors, and the headers of its responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.responses import Response as StarletteResponse

from stoker.http import errors
from stoker.http.errors import Failure
from stoker.http.request_context import Response, Route


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """
    An API of the site.

    ``prefix`` is the first segment of its paths; empty: the API has all paths that no other one has.
    """

    prefix: str
    routes: Sequence[Route]
    render: Callable[[Failure], Response] = errors.render
    #: The responses are documents of users: they are sent to readers as they are, and cached as their users decide.
    has_documents: bool = False
    #: Adds headers to a response. The second argument is the id of the request.
    decorate: Callable[[StarletteResponse, str], None] | None = None
