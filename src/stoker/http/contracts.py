"""
The contract of a handler: the types of its request and its responses, beside the handler.

    class NewConfig(Body):
        name: Name | None = None

    @operation(201, {"config": Config}, errors=(409,))
    def create(request: RequestContext, tx: Tx, body: NewConfig) -> dict[str, Any]:
        \"\"\"Create a config.\"\"\"
        return {"config": fill(Config, configs.add(tx, body.name))}

The handler receives the decoded body and query string as its parameters ``body`` and ``query``, and a transaction as
``tx``. The OpenAPI document is generated from contracts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

from stoker.http.decoders import BodyDecoder, QueryDecoder

if TYPE_CHECKING:
    from stoker.http.fields import Query
    from stoker.http.request_context import RequestContext, Response

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """
    A successful response. ``body`` is a type, a map of members to types, or None for no body. ``headers`` are always
    present.
    """

    body: Any = None
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"
    #: Other media types of the body, which the client may request.
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The types of a handler's request and responses."""

    #: The status of the response, unless the handler returns another response.
    status: int
    #: Successful responses by status.
    answers: Mapping[int, Success]
    #: Errors besides those that follow from the route: 409, for example, if the current state may forbid the request.
    errors: tuple[int, ...] = ()
    #: Names of required request headers besides the token.
    headers: tuple[str, ...] = ()
    body: BodyDecoder | None = None
    query: QueryDecoder | None = None
    #: The media type of the body. Without a type for ``body``, the handler itself reads ``request.body``.
    request_media_type: str | None = None
    #: A complete valid request body.
    example: Any = None


def operation(
    status: int,
    body: Any = None,
    *,
    errors: tuple[int, ...] = (),
    headers: tuple[str, ...] = (),
    request_headers: tuple[str, ...] = (),
    media_type: str = "application/json",
    alternatives: tuple[str, ...] = (),
    also: Mapping[int, Success] | None = None,
    body_optional: bool = False,
    request_media_type: str | None = None,
    query: type[Query] | None = None,
    example: Any = None,
) -> Callable[[F], F]:
    """
    Return a decorator that adds the contract to a handler.

    ``status``, ``body``, ``headers``, ``media_type`` and ``alternatives`` describe the successful response
    (``Success``), ``also`` other successful responses by status. The types of the request are the annotations of the
    handler's parameters. With ``body_optional``, an empty body and null count as an empty object.

    ``request_media_type`` is the media type of the body, if it is not JSON. ``query`` describes a query string that the
    handler itself reads.
    """

    def add(handler: F) -> F:
        types = get_type_hints(handler, include_extras=True)
        described: type[Query] | None = types.get("query", query)
        vars(handler)["contract"] = Contract(
            status=status,
            answers={
                status: Success(body=body, headers=headers, media_type=media_type, alternatives=alternatives),
                **(also or {}),
            },
            errors=errors,
            headers=request_headers,
            body=BodyDecoder(types["body"], is_optional=body_optional) if "body" in types else None,
            query=QueryDecoder(described) if described is not None else None,
            request_media_type=request_media_type,
            example=example,
        )
        return handler

    return add


def contract_of(handler: Callable[..., Any]) -> Contract | None:
    """Return the contract of a handler, or None if the handler has none."""
    return cast("Contract | None", getattr(handler, "contract", None))


def bind(handler: Callable[..., Any], verb: str, response_type: type[Response]) -> Callable[[RequestContext], Any]:
    """
    Return a function that decodes the request as the handler's contract says, and calls the handler.

    A handler with a parameter ``tx`` runs in a transaction, which reads for GET and HEAD. Any result other than a
    response is the content of the contract's response.
    """
    contract = contract_of(handler)
    parameters = inspect.signature(handler).parameters
    if contract is None:
        if len(parameters) != 1:
            raise TypeError(f"{handler.__qualname__} has parameters, but no contract")
        return handler
    run = _runner(handler, verb) if "tx" in parameters else handler
    body, query = contract.body, contract.query if "query" in parameters else None
    status, has_null = contract.status, contract.answers[contract.status].body is NoneType

    def decode(request: RequestContext) -> dict[str, Any]:
        arguments = {} if body is None else {"body": body.decode(request.body)}
        if query is not None:
            arguments["query"] = query.decode(request.raw.scope["query_string"])
        return arguments

    if inspect.iscoroutinefunction(handler):
        return lambda request: run(request, **decode(request))

    def call(request: RequestContext) -> Any:
        content = run(request, **decode(request))
        if isinstance(content, response_type):
            return content
        return response_type(status, b"null" if has_null else content)

    return call


def _runner(handler: Callable[..., Any], verb: str) -> Callable[..., Any]:
    """Return a function that calls the handler in a transaction."""

    def read(request: RequestContext, **arguments: Any) -> Any:
        with request.app.store.read() as tx:
            return handler(request, tx, **arguments)

    def write(request: RequestContext, **arguments: Any) -> Any:
        return request.app.store.write(lambda tx: handler(request, tx, **arguments))

    return read if verb in ("GET", "HEAD") else write
