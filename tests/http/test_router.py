"""From paths to routes."""

from __future__ import annotations

import pytest

from stoker.http.access import PUBLIC
from stoker.http.api import Route
from stoker.http.application import Router
from stoker.http.request import Response


def handler(call):
    return Response(200)


PATHS = [
    "/v1/{project}/stacks",
    "/o/{account}",
    "/o/{account}/{container}",
    "/o/{account}/{container}/{object*}",
    "/o/info",
    "/o/info/detail",
]
ROUTER = Router([Route("GET", path, PUBLIC, handler) for path in PATHS])


@pytest.mark.parametrize(
    ("path", "route", "values"),
    [
        ("/v1/p/stacks", 0, {"project": "p"}),
        ("/v1/p/stacks/", 0, {"project": "p"}),
        ("/o/info", 4, {}),
        ("/o/info/c", 2, {"account": "info", "container": "c"}),
        ("/o/info/c/o", 3, {"account": "info", "container": "c", "object": "o"}),
        ("/o/info/detail", 5, {}),
        ("/o/info/detail/o", 3, {"account": "info", "container": "detail", "object": "o"}),
        ("/o/a", 1, {"account": "a"}),
        ("/o/a/c", 2, {"account": "a", "container": "c"}),
        ("/o/a/c/", 2, {"account": "a", "container": "c"}),
        ("/o/a/c/o", 3, {"account": "a", "container": "c", "object": "o"}),
        ("/o/a/c/o/", 3, {"account": "a", "container": "c", "object": "o/"}),
        ("/o/a/c//o", 3, {"account": "a", "container": "c", "object": "/o"}),
        ("/o/a/c/x/y//z", 3, {"account": "a", "container": "c", "object": "x/y//z"}),
        ("/o/a/c//", 3, {"account": "a", "container": "c", "object": "/"}),
        ("/o/a/c///", 3, {"account": "a", "container": "c", "object": "//"}),
        ("//o/a/c/o", 3, {"account": "a", "container": "c", "object": "o"}),
    ],
)
def test_a_path_finds_its_route_and_values(path, route, values):
    found, said, _ = ROUTER.find("GET", path)
    assert found is not None
    assert (found.path, said) == (PATHS[route], values)


@pytest.mark.parametrize("path", ["/", "/v1/p", "/v1/p/stacks/x", "/o//c", "/o/a//o"])
def test_an_unknown_path_finds_no_route(path):
    assert ROUTER.find("GET", path) == (None, {}, frozenset())


def test_a_path_with_a_literal_segment_also_matches_a_named_one():
    router = Router([Route("POST", "/s/preview", PUBLIC, handler), Route("GET", "/s/{name}", PUBLIC, handler)])
    found, said, _ = router.find("GET", "/s/preview")
    assert found is not None
    assert said == {"name": "preview"}
    assert router.find("PUT", "/s/preview") == (None, {}, frozenset(["GET", "POST"]))


def test_an_unsupported_method_lists_the_supported_ones():
    assert ROUTER.find("PUT", "/o/a/c/x/y") == (None, {}, frozenset(["GET"]))
