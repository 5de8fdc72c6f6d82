"""/openapi.json is valid, describes every route of Heat's API and of Stoker's own, and says what is answered."""

from __future__ import annotations

import json
import re
from importlib import import_module
from inspect import isfunction
from pkgutil import walk_packages

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

import stoker.http
from stoker.http import health
from stoker.http.access import PUBLIC
from stoker.http.agent import ROUTES as AGENT
from stoker.http.api import Route
from stoker.http.apis import DESCRIBED
from stoker.http.application import Router
from stoker.http.cfn import ROUTES as CFN
from stoker.http.contracts import contract_of
from stoker.http.heat import ROUTES as HEAT
from stoker.http.identity import ROUTES as IDENTITY
from stoker.http.messaging import ROUTES as MESSAGING
from stoker.http.objects import ROUTES as OBJECTS
from stoker.http.openapi import document, path_of
from stoker.http.relay import ROUTES as RELAY
from stoker.http.stoker import ROUTES as STOKER
from support.openapi import openapi_document

DOCUMENT = openapi_document()
ALL = [*health.ROUTES, *AGENT, *RELAY, *HEAT, *STOKER]


def operations():
    for path, verbs in DOCUMENT["paths"].items():
        for verb, each in verbs.items():
            if verb != "parameters":
                yield verb.upper(), path, each


def test_the_document_is_valid():
    OpenAPIV31SpecValidator(json.loads(json.dumps(DOCUMENT))).validate()


@pytest.mark.parametrize("row", ALL, ids=lambda row: f"{row.verb} {row.path}")
def test_every_route_is_described(row):
    operation = DOCUMENT["paths"][path_of(row)][row.verb.lower()]
    assert operation["summary"]
    assert "``" not in str(operation)


def test_a_route_without_a_description_is_an_error():
    new = Route("GET", "/v1/{project}/new", PUBLIC, lambda call: None)
    with pytest.raises(LookupError, match="/new"):
        document([new], "")


def test_every_description_has_a_route():
    router = Router(DESCRIBED)
    for verb, path, _ in operations():
        filled = re.sub(r"{\w+}", "x", path)
        assert router.find(verb, filled)[0] is not None, f"{verb} {path}"
    assert {(verb, path) for verb, path, _ in operations()} >= {(row.verb, path_of(row)) for row in ALL}


def test_no_contract_is_unused():
    """A handler with a contract has a route."""
    modules = [import_module(part.name) for part in walk_packages(stoker.http.__path__, "stoker.http.")]
    declared = {
        value for module in modules for value in vars(module).values() if isfunction(value) and contract_of(value)
    }
    routes = [*DESCRIBED, *CFN, *IDENTITY, *MESSAGING, *OBJECTS]
    assert declared == {row.handler for row in routes if contract_of(row.handler)}
    assert len(declared) > 100


def test_every_schema_is_used():
    used = set(re.findall(r"#/components/schemas/(\w+)", str(DOCUMENT)))
    assert used == DOCUMENT["components"]["schemas"].keys()
