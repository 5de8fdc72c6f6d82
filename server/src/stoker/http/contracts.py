"""
The contract of a handler: the types of its request and its responses, beside the handler.

    class NewConfig(Body):
        name: Name | None = None

    @operation(201, {"config": Config}, errors=(409,))
    def create(request: RequestContext, tx: Tx, body: NewConfig) -> dict[str, Any]:
        \"\"\"Create a config.\"\"\"
        return {"config": fill(Config, configs.add(tx, body.name))}

The handler receives the decoded body and query string as its parameters ``body`` and ``query``, and a transaction as
``tx``. Errors name the wrong member and its expectation. The OpenAPI document is generated from contracts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from types import NoneType
from typing import Annotated, Any, TypeVar, cast, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, UnsetType
from starlette.datastructures import QueryParams

from stoker import json_values
from stoker.http.request import RequestContext, Response
from stoker.json_values import NO_NUL as NO_NUL  # noqa: PLC0414  # for importers, beside the strings below
from stoker.json_values import RequiredName as RequiredName  # noqa: PLC0414  # as above
from stoker.json_values import RequiredShortText as RequiredShortText  # noqa: PLC0414  # as above
from stoker.model.errors import Invalid
from stoker.model.server import LONGEST_ID
from stoker.store.rows import heat_time

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=Struct)
BODY = "the request's body"
#: Query strings that a decoder caches, and their bytes at most.
_CACHED, _CACHED_BYTES = 64, 64


#: The maximum of a row number in the database.
LAST = 2**63 - 1
_LARGEST = 2**31 - 1


#: Numbers of requests, and the number of a row of the database or the position after one.
Whole = Annotated[int, Meta(ge=0, le=_LARGEST)]
Positive = Annotated[int, Meta(ge=1, le=_LARGEST)]
Position = Annotated[int, Meta(ge=0, le=LAST)]
RowNumber = Annotated[int, Meta(ge=1, le=LAST)]
#: Whole seconds stay whole.
Seconds = Annotated[int, Meta(gt=0, lt=2**31)] | Annotated[float, Meta(gt=0, lt=2**31)]
#: A time in Heat's format, in responses.
Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
#: A time in requests, with its offset, such as ``2026-01-01T00:00:00Z``.
Moment = Annotated[datetime, Meta(tz=True)]
Id = Annotated[str, Meta(min_length=1)]
#: Strings of requests. The database stores no NUL.
Text = Annotated[str, Meta(pattern=NO_NUL)]
Name = Annotated[str, Meta(max_length=255, pattern=NO_NUL)]
ShortText = Annotated[str, Meta(max_length=64, pattern=NO_NUL)]
LongText = Annotated[str, Meta(max_length=65535, pattern=NO_NUL)]
ServerId = Annotated[str, Meta(max_length=LONGEST_ID, pattern=NO_NUL)]
#: Counters of responses.
Count = Annotated[int, Meta(ge=0, le=LAST)]

#: A member of a response that may be absent.
Absent = UnsetType


#: The types of ``described`` values. The schemas of these values have a position in this list as a member
#: ``DESCRIBED``, because msgspec admits only JSON there; ``http.openapi`` replaces the member by the type's schema.
DESCRIBED_TYPES: list[Any] = []
DESCRIBED = "x-stoker-described"


def described(kind: Any, description: str | None = None) -> Meta:
    """
    Return what the OpenAPI document says of a value of any type that the handler passes on to a function that checks
    it. ``kind`` is the type of valid values:

        Inputs = Annotated[Any, described(list[ConfigInput])]
    """
    DESCRIBED_TYPES.append(kind)
    return Meta(description=description, extra_json_schema={DESCRIBED: len(DESCRIBED_TYPES) - 1})


class Query(Struct):
    """The parameters of a query string. A parameter that may occur several times is a tuple."""


class Body(Struct):
    """The JSON object of a request. Unknown members are ignored, as in Heat."""


class StrictBody(Body):
    """As ``Body``, of Keystone's and Zaqar's API: strings are neither numbers nor booleans there."""


class Answer(Struct, forbid_unknown_fields=True):
    """A JSON object in a response, with exactly these members."""


class Link(Answer):
    href: str
    rel: str


def fill(kind: type[T], source: object, /, **computed: Any) -> T:
    """
    Return an object of the type ``kind`` with the attributes of ``source`` that have the names of its members.

    ``computed`` are the members that are not such attributes. Times become strings in Heat's format.
    """
    for name in kind.__struct_fields__:
        value = computed[name] if name in computed else getattr(source, name)
        computed[name] = heat_time(value) if type(value) is datetime else value
    return kind(**computed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """
    A successful response. ``body`` is a type, a map of members to types, or None for no body. ``headers`` are always
    present.
    """

    body: Any = None
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The types of a handler's request and responses."""

    #: The status of the response, unless the handler returns another response.
    status: int
    #: Successful responses by status.
    answers: Mapping[int, Success]
    #: Errors besides those that follow from the route: 409, for example, if the current state may forbid the request.
    errors: tuple[int, ...] = ()
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
    media_type: str = "application/json",
    has_etag: bool = False,
    body_optional: bool = False,
    member: str | None = None,
    request_media_type: str | None = None,
    example: Any = None,
) -> Callable[[F], F]:
    """
    Return a decorator that adds the contract to a handler.

    ``status``, ``body``, ``headers`` and ``media_type`` describe the successful response (``Success``). With
    ``has_etag``, it has the header ETag, and is 304 for a client that has it. The types of the request are the
    annotations of the handler's parameters. With ``body_optional``, an empty body and null count as an empty object.
    ``member`` is the only member of the request's body, which encloses the annotated type.

    ``request_media_type`` is the media type of the body, if it is not JSON.
    """

    def add(handler: F) -> F:
        types = get_type_hints(handler, include_extras=True)
        etag = ("ETag",) if has_etag else ()
        success = Success(body=body, headers=(*headers, *etag), media_type=media_type)
        vars(handler)["contract"] = Contract(
            status=status,
            answers={status: success, **({304: Success(headers=etag)} if has_etag else {})},
            errors=errors,
            body=BodyDecoder(types["body"], is_optional=body_optional, member=member) if "body" in types else None,
            query=QueryDecoder(types["query"]) if "query" in types else None,
            request_media_type=request_media_type,
            example=example,
        )
        return handler

    return add


def contract_of(handler: Callable[..., Any]) -> Contract | None:
    return cast("Contract | None", getattr(handler, "contract", None))


def bind(handler: Callable[..., Any], verb: str) -> Callable[[RequestContext], Any]:
    """
    Return a function that decodes the request as the handler's contract says, and calls the handler.

    A handler with a parameter ``tx`` runs in a transaction, which reads for GET and HEAD. Any result other than a
    response is the content of the contract's response.
    """
    contract, is_coroutine = contract_of(handler), inspect.iscoroutinefunction(handler)
    parameters = inspect.signature(handler).parameters
    if contract is None:
        if len(parameters) != 1:
            raise TypeError(f"{handler.__qualname__} has parameters, but no contract")
        return handler
    body, query, has_tx, reads = contract.body, contract.query, "tx" in parameters, verb in ("GET", "HEAD")
    status, has_null = contract.status, contract.answers[contract.status].body is NoneType

    def call(request: RequestContext) -> Any:
        arguments = {} if body is None else {"body": body.decode(request.body)}
        if query is not None:
            arguments["query"] = query.decode(request.raw.scope["query_string"])
        if not has_tx:
            content = handler(request, **arguments)
        elif reads:
            with request.read() as tx:
                content = handler(request, tx, **arguments)
        else:
            content = request.write(partial(handler, request, **arguments))
        if is_coroutine or isinstance(content, Response):
            return content
        return Response(status, b"null" if has_null else content)

    return call


class BodyDecoder:
    """
    Decodes bodies to one type. Raises TypeError if msgspec does not support the type.

    In a ``Body`` that is no ``StrictBody``, numbers and booleans may be strings, because Heat's clients send strings. A
    type with a class method ``decode`` decodes the bytes itself. ``member``: as in ``operation``.
    """

    def __init__(self, kind: Any, *, is_optional: bool = False, member: str | None = None) -> None:
        self.kind = kind if member is None else msgspec.defstruct("Enclosing", [(member, kind)])
        self.is_optional, self._member = is_optional, member
        self._own: Callable[[bytes], Any] | None = getattr(kind, "decode", None)
        is_lenient = isinstance(kind, type) and issubclass(kind, Body) and not issubclass(kind, StrictBody)
        self._decoder = msgspec.json.Decoder(self.kind, strict=not is_lenient)

    def decode(self, raw: bytes) -> Any:
        """Return the body. Raises Invalid, which names the wrong member, or RequestLimitExceeded."""
        if self.is_optional and raw.strip() in (b"", b"null"):
            raw = b"{}"
        try:
            if self._own is not None:
                return self._own(raw)
            if not raw.isascii() or len(raw) > json_values.DEEPEST:
                _check_text(raw)
            body = self._decoder.decode(raw)
            return body if self._member is None else getattr(body, self._member)
        except msgspec.ValidationError as error:
            raise json_values.explain(error, self.kind, BODY) from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Invalid(f"{BODY} is not JSON: {error if raw.strip() else 'it is empty'}") from None


def _check_text(raw: bytes) -> None:
    """Raise Invalid or UnicodeDecodeError for what msgspec accepts in members that it skips."""
    if not raw.isascii():
        raw.decode()
    if len(raw) > json_values.DEEPEST and json_values.may_be_deep(raw):  # each level has a bracket
        json_values.decode(raw, BODY)


class QueryDecoder:
    """
    Decodes query strings to one type.

    Most requests are polls with the same short query strings, so their values are cached.
    """

    def __init__(self, kind: type[Query]) -> None:
        self.kind = kind
        self._cached: Callable[[bytes], Any] = lru_cache(maxsize=_CACHED)(self._decode)
        encoded = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        #: Names of the parameters that may occur several times: their type is a tuple.
        self._several = [encoded[name] for name, hint in get_type_hints(kind).items() if get_origin(hint) is tuple]

    def decode(self, text: bytes) -> Any:
        """Return the query. If a parameter occurs twice, its last value counts. Raises Invalid."""
        return copy(self._cached(text)) if len(text) <= _CACHED_BYTES else self._decode(text)

    def _decode(self, text: bytes) -> Any:
        parameters = QueryParams(text)
        values: dict[str, Any] = dict(parameters.multi_items())
        for name in self._several:
            if name in values:
                values[name] = parameters.getlist(name)
        return convert(values, self.kind, "the query")


def convert(value: Any, kind: Any, name: str) -> Any:
    """Return a value of another part of the request, ``name``, as the type ``kind``. Raises Invalid."""
    return json_values.convert(value, kind, name, strict=False)
