"""A client that compares each answer of a served Stoker with its description in /openapi.json."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

from openapi_schema_validator import OAS31Validator

from stoker.http.apis import DESCRIBED
from stoker.http.application import Router
from stoker.http.openapi import path_of
from support.server import Answer, Served


class Described:
    """Sends requests as the administrator."""

    def __init__(self, stoker: Served) -> None:
        self.stoker = stoker
        self._router = Router(DESCRIBED)
        self._validators: dict[int, OAS31Validator] = {}

    @cached_property
    def said(self) -> Any:
        return self.stoker.request("GET", "/openapi.json").body

    def heat(self, verb: str, path: str, body: Any = None) -> Answer:
        return self.ask(verb, f"/v1/{self.stoker.project}{path}", body)

    def ask(self, verb: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        all_headers = {"X-Auth-Token": self.stoker.token, **(headers or {})}
        answer = self.stoker.request(verb, path, body, all_headers)
        self.check(verb, path, answer)
        return answer

    def is_known(self, verb: str, path: str) -> bool:
        """Whether the document describes the path."""
        return self._router.find(verb, unquote(urlsplit(path).path))[0] is not None

    def check(self, verb: str, path: str, answer: Answer) -> None:
        """Assert that an answer has a described status and body."""
        row, _, _ = self._router.find(verb, unquote(urlsplit(path).path))
        assert row is not None, f"{verb} {path} is no row"
        responses = self.said["paths"][path_of(row)][verb.lower()]["responses"]
        place = f"{verb} {path}: {answer.status} {answer.raw[:600]!r}"
        assert str(answer.status) in responses, place
        self.hold(answer, responses[str(answer.status)], place)

    def hold(self, answer: Answer, response: Mapping[str, Any], place: str) -> None:
        """Assert that headers and body match the description of a response."""
        if "$ref" in response:
            response = self.said["components"]["responses"][response["$ref"].rpartition("/")[2]]
        for name in response.get("headers", ()):
            assert answer.headers[name], place
        if "content" not in response:
            assert answer.raw == b"", place
            return
        if not answer.raw:  # of HEAD, whose errors have no body
            return
        media_type = answer.headers["Content-Type"].partition(";")[0]
        content = response["content"].get(media_type) or response["content"].get("*/*")
        assert content is not None, place
        if "json" not in media_type:
            return
        whole = self._validators.get(id(content))
        if whole is None:
            schema = {**content["schema"], "components": self.said["components"]}
            whole = self._validators[id(content)] = OAS31Validator(schema)
        wrong = [f"{error.json_path}: {error.message}" for error in whole.iter_errors(answer.body)]
        assert not wrong, f"{wrong} {place}"
