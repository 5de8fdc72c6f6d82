"""/openapi.json: the document of Heat's face and of the identity face."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from stoker.http import health
from stoker.http.access import Public
from stoker.http.call import Call, Reply, Route
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.identity.routes import ROUTES as IDENTITY
from stoker.http.openapi.document import document
from stoker.http.openapi.heat import resources, site, software, stacks, templates, triggering
from stoker.http.openapi.identity import people, tokens
from stoker.http.openapi.operations import Noun, Operation, ok
from stoker.http.openapi.schemas import MAP


def show(call: Call) -> Reply:
    return Reply(200, _rendered(call.services.settings.public_url))


ROUTES = [Route("GET", "/openapi.json", Public(), show)]

DESCRIBED = (*health.ROUTES, *ROUTES, *HEAT, *IDENTITY)
NOUNS = (
    stacks.NOUN,
    resources.RESOURCES,
    resources.EVENTS,
    resources.SNAPSHOTS,
    software.CONFIGS,
    software.DEPLOYMENTS,
    triggering.TRIGGERS,
    triggering.SCHEDULES,
    templates.NOUN,
    site.SERVERS,
    site.AUDIT,
    site.SITE,
    Noun("The service", {show: Operation(summary="This document", answers=ok(MAP))}),
    tokens.NOUN,
    people.PROJECTS,
    people.USERS,
    people.ROLES_AND_GRANTS,
    people.CREDENTIALS,
)


@lru_cache(maxsize=1)
def _rendered(public_url: str) -> bytes:
    return msgspec.json.encode(document(DESCRIBED, NOUNS, public_url))
