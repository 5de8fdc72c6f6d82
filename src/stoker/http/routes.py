"""The routes of all APIs, for given settings."""

from __future__ import annotations

from stoker.http import health, metrics, signals
from stoker.http.agent.routes import ROUTES as AGENT
from stoker.http.cfn.routes import ROUTES as CFN
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.identity.routes import ROUTES as IDENTITY
from stoker.http.messaging.routes import ROUTES as MESSAGING
from stoker.http.objects.routes import ROUTES as OBJECTS
from stoker.http.openapi.routes import ROUTES as OPENAPI
from stoker.http.relay.routes import ROUTES as RELAY
from stoker.http.request_context import Route
from stoker.settings import Settings


def list_routes(settings: Settings) -> list[Route]:
    """Return the routes of a site with these settings. The APIs of external services are left out."""
    routes = [*health.ROUTES, *metrics.ROUTES, *OPENAPI, *AGENT, *RELAY, *HEAT, *CFN, *signals.ROUTES]
    if not settings.at_keystone:
        routes += IDENTITY
    if settings.embeds_queues:
        routes += MESSAGING
    if settings.embeds_objects:
        routes += OBJECTS
    return routes
