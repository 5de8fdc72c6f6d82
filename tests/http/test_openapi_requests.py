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
from hypothesis import HealthCheck, given, settings
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

from stoker.http.heat import stack_lookup
from stoker.http.messaging.queues import PATCH_TYPE
from stoker.http.openapi.document import path_of
from stoker.http.openapi.routes import DESCRIBED
from stoker.http.request_context import Route
from support.databases import KINDS
from support.described_api import CLIENT_ID
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


schemathesis.serializer.alias(PATCH_TYPE, "application/json")
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
        self._make = {"heat": self._of_heat, "keystone": self._of_keystone, "stores": self._of_stores}
        self._seen: dict[str, dict[str, str]] = {}

    def things(self, row: Route) -> dict[str, str]:
        """Values that mean something for the names in the row's path; their own where something is done to them."""
        face = "keystone" if row.path.startswith("/identity") else "heat"
        if row.path.startswith(("/messaging", "/object-store")):
            face = "stores"
        if row.verb in ("GET", "HEAD"):
            if face not in self._seen:
                self._seen[face] = self._make[face]()
            return self._seen[face]
        return self._make[face]()

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

    def _of_keystone(self) -> dict[str, str]:
        self._made += 1
        name = f"n{self._made}"
        project = self.keystone("POST", "/projects", {"project": {"name": name}})["project"]["id"]
        user = self.keystone("POST", "/users", {"user": {"name": name, "password": "horse staple"}})["user"]["id"]
        self.keystone("PUT", f"/projects/{project}/users/{user}/roles/member")
        return {
            "project": self.stoker.project,
            "project_id": project,
            "user_id": user,
            "role_id": "member",
            "domain_id": "default",
        }

    def _of_stores(self) -> dict[str, str]:
        self._made += 1
        name, account = f"n{self._made}", f"AUTH_{self.stoker.project}"
        headers = {"X-Auth-Token": self.stoker.token, "Client-ID": CLIENT_ID}
        queue, container = f"/messaging/v2/queues/{name}", f"/object-store/v1/{account}/{name}"
        self.stoker.request("PUT", container, b"", headers)
        self.stoker.request("PUT", f"{container}/o", b"text", {**headers, "Content-Type": "text/plain"})
        posted = self.stoker.request("POST", f"{queue}/messages", {"messages": [{"body": 1}] * 2}, headers)
        claim = self.stoker.request("POST", f"{queue}/claims?limit=1", {}, headers)
        subscriber = {"subscriber": "https://93.184.216.34/"}
        subscription = self.stoker.request("POST", f"{queue}/subscriptions", subscriber, headers)
        return {
            "project": self.stoker.project,
            "account": account,
            "container": name,
            "object": "o",
            "queue": name,
            "message_id": posted.body["resources"][1].rpartition("/")[2],
            "claim_id": claim.headers["Location"].rpartition("/")[2],
            "subscription_id": subscription.body["subscription_id"],
        }

    def own(self) -> dict[str, str]:
        """What only the caller's own user has."""
        self._made += 1
        me = self.keystone("GET", "/auth/tokens")["token"]["user"]["id"]
        credential = {"application_credential": {"name": f"n{self._made}"}}
        made = self.keystone("POST", f"/users/{me}/application_credentials", credential)
        key = self.keystone("POST", f"/users/{me}/credentials/OS-EC2", {})
        return {
            "user_id": me,
            "credential_id": made["application_credential"]["id"],
            "access": key["credential"]["access"],
        }

    def keystone(self, verb: str, path: str, body: Any = None) -> Any:
        headers = {"X-Auth-Token": self.stoker.token, "X-Subject-Token": self.stoker.token}
        return self.stoker.request(verb, f"/identity/v3{path}", body, headers).body

    def ask(self, case: schemathesis.Case) -> None:
        answer = case.call(
            base_url=self.stoker.url,
            session=self.session,
            headers={"X-Auth-Token": self.stoker.token},
            allow_redirects=False,
            timeout=30,
        )
        case.validate_response(answer, checks=CHECKS)


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
    if "credential" in row.path:
        things = {**things, **served.own()}

    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path_of(row)][row.verb].as_strategy(mode), known=st.booleans())
    def ask(case, known):
        case.path_parameters.update(things if known else {"project": things["project"]})
        if known and isinstance(case.body, dict):
            case.body.update({name: things[name] for name in ("config_id", "server_id") if name in case.body})
        if known and "X-Subject-Token" in case.headers and row.verb != "DELETE":
            case.headers["X-Subject-Token"] = served.stoker.token
        served.ask(case)

    ask()


def test_an_answer_that_differs_from_its_description_is_detected(fuzzed):
    said = copy.deepcopy(openapi_document())
    del said["paths"]["/healthz"]["get"]["responses"]["200"]
    other = schemathesis.openapi.from_dict(brief(said))
    with pytest.raises(FailureGroup, match="Undocumented"):
        fuzzed("sqlite").ask(other["/healthz"]["GET"].Case())
