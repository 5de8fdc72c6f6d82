"""Requests made from /openapi.json, good and bad ones: no 5xx, and every answer is as the document says."""

from __future__ import annotations

import copy
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import GenerationConfig, SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from stoker.http.api import Route
from stoker.http.apis import DESCRIBED
from stoker.http.heat import stack_lookup
from stoker.http.openapi import path_of
from support.databases import KINDS
from support.openapi import openapi_document
from support.search import examples, sample
from support.server import Served, served_with

pytestmark = pytest.mark.slow

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
#: One handler for some forty rows: a few stand for all.
ROWS = [
    row
    for row in DESCRIBED
    if row.handler is not stack_lookup.redirect or row.path.endswith(("{stack_name}", "outputs"))
]
EXAMPLES = examples(2)

TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"length": {"type": "number", "default": 8}},
    "resources": {
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"outputs": [{"name": "o"}]}},
        "server": {"type": "OS::Heat::DeployedServer"},
        "run": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "config"},
                "server": {"get_resource": "server"},
                "signal_transport": "HEAT_SIGNAL",
            },
        },
    },
    "outputs": {"o": {"value": {"get_attr": ["run", "o"]}}},
}
#: Making longer texts takes seconds; test_bad_input has them.
LONGEST = 1000


def brief(said: Any) -> Any:
    """The document as plain data, without bounds that only whoever generates texts would hit."""
    if isinstance(said, Mapping):
        return {key: brief(part) for key, part in said.items() if key != "maxLength" or part <= LONGEST}
    return [brief(part) for part in said] if isinstance(said, list | tuple) else said


config = SchemathesisConfig()
config.projects.default.generation = GenerationConfig(with_security_parameters=False)
DOCUMENT = openapi_document()
schema = schemathesis.openapi.from_dict(brief(DOCUMENT), config=config)


@pytest.fixture(scope="module")
def fuzzed(request, tmp_path_factory) -> Iterator[Callable[[str], Fuzzed]]:
    """
    A server of this module on each kind of database, started when first asked for.

    A parametrized fixture would start one per test: its scope is that of a test if another parameter is no fixture.
    """
    with ExitStack() as cleanup:

        @functools.cache
        def start(kind: str) -> Fuzzed:
            folder = tmp_path_factory.mktemp("by_schema")
            stoker = cleanup.enter_context(served_with(request, folder, kind))
            return Fuzzed(stoker, cleanup.enter_context(requests.Session()))

        yield start


class Fuzzed:
    def __init__(self, stoker: Served, session: requests.Session) -> None:
        self.stoker = stoker
        self.session = session
        self._made = 0
        self._seen: dict[str, str] = {}

    def things(self, row: Route) -> dict[str, str]:
        """Values that mean something for the names in the row's path; their own where something is done to them."""
        if row.verb in ("GET", "HEAD"):
            self._seen = self._seen or self._of_heat()
            return self._seen
        return self._of_heat()

    def _of_heat(self) -> dict[str, str]:
        self._made += 1
        name, stoker = f"n{self._made}", self.stoker
        stack = stoker.heat("POST", "/stacks", {"stack_name": name, "template": TEMPLATE}).body["stack"]["id"]
        path = f"/stacks/{name}/{stack}"
        stoker.heat("POST", f"{path}/resources/run/signal", {"deploy_status_code": 0})  # snapshots want it done
        server = stoker.heat("POST", "/servers", {"name": name}).body["server"]["id"]
        config = stoker.heat("POST", "/software_configs", {}).body["software_config"]["id"]
        said = {"config_id": config, "server_id": server}
        return {
            "project": stoker.project,
            "stack_name": name,
            "stack_id": stack,
            "resource_name": "run",
            "output_key": "o",
            "snapshot_id": stoker.heat("POST", f"{path}/snapshots", {}).body["id"],
            "event_id": stoker.heat("GET", f"{path}/resources/run/events").body["events"][0]["id"],
            "type_name": "OS::Heat::Value",
            "version": "heat_template_version.2018-08-31",
            "server": server,
            "server_id": server,
            "config_id": config,
            "deployment_id": stoker.heat("POST", "/software_deployments", said).body["software_deployment"]["id"],
        }

    def ask(self, case: schemathesis.Case) -> None:
        case.validate_response(self.send(case), checks=CHECKS)

    def send(self, case: schemathesis.Case) -> Any:
        """Return the answer to a request."""
        return case.call(
            base_url=self.stoker.url,
            session=self.session,
            headers={"X-Auth-Token": self.stoker.token},
            allow_redirects=False,
            timeout=30,
        )

    def prepare(self, case: schemathesis.Case, things: Mapping[str, str]) -> None:
        """Let the request name objects of this server."""
        case.path_parameters.update(things)
        if isinstance(case.body, dict):
            case.body.update({name: things[name] for name in ("config_id", "server_id") if name in case.body})


def varied(row: Route) -> bool:
    """There is something in it to get wrong besides names in its path."""
    operation = DOCUMENT["paths"][path_of(row)][row.verb.lower()]
    return "parameters" in operation or "requestBody" in operation


#: All rows with good requests. A sample with bad ones: test_openapi_answers tries odd values in every field.
MODES = [(row, GenerationMode.POSITIVE) for row in ROWS] + [
    (row, GenerationMode.NEGATIVE) for row in sample(list(filter(varied, ROWS)), 3)
]
#: The kinds of database in turns.
CASES = [
    pytest.param(row, mode, kind, id=f"{row.verb} {row.path} {mode.value} {kind}")
    for (row, mode), kind in zip(MODES, itertools.cycle(KINDS), strict=False)
]


@pytest.mark.parametrize(("row", "mode", "kind"), CASES)
def test_no_answer_differs_from_its_description(fuzzed, row, mode, kind):
    served = fuzzed(kind)
    things = served.things(row)

    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path_of(row)][row.verb].as_strategy(mode), known=st.booleans())
    def ask(case, known):
        if known:
            served.prepare(case, things)
        else:
            case.path_parameters["project"] = things["project"]
        served.ask(case)

    ask()


#: At and beyond the limits of columns, of the API and of JSON.
LIMITS = st.sampled_from(
    [
        *("", "x" * 64, "x" * 65, "x" * 255, "x" * 256, "é" * 255, "💥" * 255, "x" * 1025, "x" * 70_000),
        *("nul \0", "\ufffd", "\u202e", "\x85", "-1", "9" * 30),
        *(-1, 0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 1.5, 1e308),
        *(None, True, [], {}, [None], {"a": "nul \0"}, ["x" * 256] * 2, {"x" * 256: "x"}),
    ]
)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all parts of a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from leaves(part, (*path, key))


def replace_part(body: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        body = body[key]
    body[path[-1]] = value


def shape(answer: Any) -> Any:
    """The status and the members of an answer, without its values."""

    def members(value: Any) -> Any:
        return {key: members(part) for key, part in value.items()} if isinstance(value, dict) else None

    is_json = "json" in answer.headers.get("Content-Type", "") and answer.content
    body = answer.json() if is_json else None
    if answer.status_code < 300 and isinstance(body, dict):
        body = dict.fromkeys(body)  # what is inside depends on what other requests have left
    return answer.status_code, members(body)


#: These answers depend on the time, or on the site.
UNSTABLE = ("/healthz", "/metrics", "/v1/{project}/status")


@pytest.mark.parametrize(
    "row",
    sample([row for row in ROWS if varied(row) and row.path not in UNSTABLE], 4),
    ids=lambda row: f"{row.verb} {row.path}",
)
def test_values_at_their_limits_have_the_same_answer_on_both_databases(fuzzed, row):
    """SQLite stores what PostgreSQL refuses, so only a check before both makes them equal."""

    @settings(
        max_examples=examples(2),
        phases=[Phase.generate],  # to shrink an example takes many requests
        database=None,
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path_of(row)][row.verb].as_strategy(GenerationMode.POSITIVE), data=st.data())
    def compare(case, data):
        paths = list(leaves(case.body)) if isinstance(case.body, dict) else []
        places = [("body", path) for path in paths] + [("query", name) for name in case.query]
        if not places:
            return
        body, query = case.body, case.query
        (part, place), value = data.draw(st.sampled_from(places)), data.draw(LIMITS)
        found = {}
        for kind in KINDS:
            served = fuzzed(kind)
            things = served.things(row)
            case.body, case.query = copy.deepcopy(body), dict(query)
            served.prepare(case, things)
            if part == "body":
                replace_part(case.body, place, copy.deepcopy(value))
            else:
                case.query[place] = str(value)
            answer = served.send(case)
            assert answer.status_code < 500, (kind, part, place, value, served.stoker.output[-3000:])
            found[kind] = shape(answer)
        assert len({repr(answer) for answer in found.values()}) == 1, (part, place, str(value)[:80], found)

    compare()


def test_an_answer_that_differs_from_its_description_is_detected(fuzzed):
    said = copy.deepcopy(openapi_document())
    del said["paths"]["/healthz"]["get"]["responses"]["200"]
    other = schemathesis.openapi.from_dict(brief(said))
    with pytest.raises(FailureGroup, match="Undocumented"):
        fuzzed("sqlite").ask(other["/healthz"]["GET"].Case())
