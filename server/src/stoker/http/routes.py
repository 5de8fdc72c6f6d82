"""The APIs of a site, for given settings."""

from __future__ import annotations

from stoker.http import health, metrics, signals
from stoker.http.agent.routes import ROUTES as AGENT
from stoker.http.api import Api
from stoker.http.cfn.routes import API as CFN
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.identity.routes import API as IDENTITY
from stoker.http.messaging.routes import API as MESSAGING
from stoker.http.objects.routes import API as OBJECTS
from stoker.http.openapi.routes import ROUTES as OPENAPI
from stoker.http.relay.routes import ROUTES as RELAY
from stoker.http.stoker.routes import ROUTES as STOKER
from stoker.settings import Settings

#: Heat's API, and Stoker's own ones.
_OWN = Api("", (*health.ROUTES, *metrics.ROUTES, *OPENAPI, *AGENT, *RELAY, *HEAT, *STOKER, *signals.ROUTES))
_ALL = (_OWN, CFN, IDENTITY, MESSAGING, OBJECTS)


def list_apis(settings: Settings) -> list[Api]:
    """Return the APIs of a site with these settings. Those of external services are left out."""
    absent = {
        IDENTITY: settings.at_keystone,
        MESSAGING: not settings.embeds_queues,
        OBJECTS: not settings.embeds_objects,
    }
    return [api for api in _ALL if not absent.get(api)]


def find_api(path: str) -> Api:
    """Return the API that a path belongs to."""
    return next((api for api in _ALL if api.prefix and path.startswith(f"/{api.prefix}")), _OWN)
