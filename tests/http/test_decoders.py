"""Errors of wrong members name the member and what it must be, in the words of JSON."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from stoker.http.contracts import Body, BodyDecoder, Name, Positive, Query, QueryDecoder, RequiredName, Seconds, Whole
from stoker.model.errors import Invalid


class Entry(Body, forbid_unknown_fields=True):
    name: RequiredName
    kind: Literal["A", "B"] = "A"


class Request(Body, kw_only=True):
    name: Name | None = None
    flag: bool | None = None
    count: Whole | None = None
    timeout: Seconds | None = None
    kind: Literal["A", "B"] | None = None
    entries: list[Entry] | None = None
    values: dict[str, str] | None = None
    anything: Any = None
    server: str


class Filter(Query):
    limit: Positive | None = None
    detail: bool = False
    name: tuple[str, ...] = ()


BODIES = BodyDecoder(Request)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ('"name": 5', "name must be a string, not a whole number"),
        ('"name": {}', "name must be a string, not a map"),
        ('"name": true', "name must be a string, not true or false"),
        (f'"name": "{"x" * 256}"', "name must have at most 255 characters"),
        ('"name": "a\\u0000b"', "name must not contain NUL"),
        ('"flag": "perhaps"', "flag must be true or false, not a string"),
        ('"flag": 2', "flag must be true or false, not a whole number"),
        ('"count": "many"', "count must be a whole number, not a string"),
        ('"count": -1', "count must be at least 0"),
        ('"count": 2147483648', "count must be at most 2147483647"),
        ('"count": 1.5', "count must be a whole number, not a number"),
        ('"timeout": 0', "timeout must be at least 1"),
        ('"kind": "C"', "kind 'C' is none of A, B"),
        ('"kind": 5', "kind must be a string, not a whole number"),
        ('"entries": {}', "entries must be a list, not a map"),
        ('"entries": [5]', "entries[0] must be a map, not a whole number"),
        ('"entries": [{}]', "entries[0].name is required"),
        ('"entries": [{"name": ""}]', "entries[0].name must not be empty"),
        ('"entries": [{"name": "a", "surprise": 1}]', "entries[0] has the unknown member 'surprise'"),
        ('"values": {"a": 1}', "values[...] must be a string, not a whole number"),
        ('"server": null', "server must be a string, not null"),
    ],
)
def test_a_wrong_member_is_named(member, message):
    whole = "{" + member + ("" if "server" in member else ', "server": "s"') + "}"
    with pytest.raises(Invalid) as error:
        BODIES.decode(whole.encode())
    assert error.value.message == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "server is required"),
        (b"[]", "the request's body must be a JSON object"),
        (b"null", "the request's body must be a JSON object"),
        (b"", "the request's body is not JSON"),
        (b"{'a': 1}", "the request's body is not JSON"),
        (b'{"name": "\xff"}', "the request's body is not JSON"),
        (b'{"name": "\\ud800"}', "the request's body is not JSON"),
        (b'{"surprise": ' + b"[" * 201 + b"]" * 201 + b"}", "the request's body is nested too deeply"),
        (b'{"anything": ' + b"[" * 100_000, "the request's body is nested too deeply"),
    ],
)
def test_a_body_that_is_none_is_refused(body, message):
    with pytest.raises(Invalid, match=message):
        BODIES.decode(body)


@pytest.mark.parametrize(("flag", "value"), [("true", True), ('"True"', True), ('"FALSE"', False), ("null", None)])
def test_flags_and_numbers_may_be_strings(flag, value):
    request = BODIES.decode(b'{"server": "s", "count": "7", "flag": %s, "unknown": [1]}' % flag.encode())
    assert (request.count, request.flag) == (7, value)


@pytest.mark.parametrize("body", [b"", b"null", b" {} "])
def test_an_optional_body_may_be_empty(body):
    class Force(Body):
        force: bool = False

    assert BodyDecoder(Force, is_optional=True).decode(body) == Force(force=False)


def test_parameters_may_occur_several_times_where_the_type_is_a_tuple():
    decoded = QueryDecoder(Filter).decode(b"limit=5&limit=6&name=a&name=b&detail=True&other=1")
    assert decoded == Filter(limit=6, detail=True, name=("a", "b"))
    with pytest.raises(Invalid, match="limit must be at least 1"):
        QueryDecoder(Filter).decode(b"limit=0")
