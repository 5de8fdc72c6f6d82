"""A handler with a contract receives what its signature names, and returns content or a response."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import NoneType, SimpleNamespace
from typing import Any

import pytest

from stoker.http.contracts import Body, Query, Whole, bind, operation
from stoker.http.request import RequestContext, Response


class Amount(Body):
    amount: Whole


class Page(Query):
    limit: Whole = 5


def request(body: Any = None, query: str = "") -> Any:
    raw = json.dumps(body).encode()
    return SimpleNamespace(
        read=lambda: nullcontext("read"),
        write=lambda do: do("write"),
        body=raw,
        raw=SimpleNamespace(scope={"query_string": query.encode()}),
    )


@pytest.mark.parametrize(("verb", "transaction"), [("GET", "read"), ("HEAD", "read"), ("POST", "write")])
def test_a_handler_receives_a_transaction_body_and_query(verb, transaction):
    @operation(201, dict[str, Any])
    def create(request: RequestContext, tx: str, body: Amount, query: Page) -> list[Any]:
        """Create."""
        return [tx, body.amount, query.limit]

    response = bind(create, verb)(request({"amount": "7"}, "limit=3"))
    assert (response.status, response.content) == (201, [transaction, 7, 3])


def test_a_response_of_the_handler_is_returned():
    @operation(200)
    def show(request: RequestContext) -> Response:
        """Show."""
        return Response(404)

    assert bind(show, "GET")(request()).status == 404


@pytest.mark.parametrize(("body", "content"), [(NoneType, b"null"), (None, None)])
def test_none_is_null_only_if_the_contract_has_a_body(body, content):
    @operation(200, body)
    def act(request: RequestContext) -> None:
        """Act."""

    assert bind(act, "POST")(request()).content == content


def test_parameters_without_a_contract_are_an_error():
    def create(request: RequestContext, body: Amount) -> None: ...

    with pytest.raises(TypeError, match="create has parameters"):
        bind(create, "POST")
