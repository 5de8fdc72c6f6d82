"""/v1/{project}/relays: relays, through which the agents of a remote site reach Stoker (Stoker's own)."""

from __future__ import annotations

import re
import ssl
from typing import Annotated, Any

from msgspec import Meta, field

from stoker.addresses import has_host
from stoker.http.contracts import Answer, Body, Count, Id, RequiredName, Text, Time, described, fill, operation
from stoker.http.request import RequestContext
from stoker.model.errors import Invalid
from stoker.model.server import Relay
from stoker.servers import relays as relay_service
from stoker.store import servers
from stoker.store.tx import Tx

#: Letters, digits and punctuation that neither a shell nor Python interprets within quotes.
_URL = re.compile(r"https?://[A-Za-z0-9.:_\[\]-]+(/[A-Za-z0-9._~/-]*)?")
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_LONGEST_CA = 64 * 1024


RelayName = Annotated[Any, described(Annotated[str, Meta(pattern=f"^{_NAME}$")])]


class NewRelay(Body):
    """``url`` is where the site's agents reach the relay; ``ca`` has the certificates, in PEM, that verify it."""

    name: RelayName
    url: RequiredName
    ca: Text | None = None


class ShownRelay(Answer):
    """``last_seen`` is the time of the relay's last request; null: none."""

    id: Id
    name: str
    url: str
    created_at: Time
    created_by: str | None
    last_seen: Time | None
    is_online: Annotated[bool, Meta(description="Whether the last request is recent")] = field(name="online")
    agents: Annotated[Count, Meta(description="The agents that it served at the last request")]
    version: str | None


class CreatedRelay(ShownRelay):
    key: Annotated[str, Meta(description="The key, which cannot be shown again")]


@operation(201, {"relay": CreatedRelay}, errors=(409,), example={"name": "site1", "url": "https://relay.site1:8005"})
def create(request: RequestContext, tx: Tx, body: NewRelay) -> dict[str, Any]:
    """Create a relay. The response contains its key."""
    url, ca = _check(body)
    user = request.user.user_name
    relay, key = relay_service.create(tx, request.project, str(body.name), url, ca=ca, created_by=user)
    _describe(request, relay)
    return {"relay": fill(CreatedRelay, relay, is_online=False, key=key)}


@operation(200, {"relays": list[ShownRelay]})
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the project's relays, without their keys."""
    since = tx.now - request.app.settings.offline_after
    return {
        "relays": [
            fill(ShownRelay, relay, is_online=relay.last_seen is not None and relay.last_seen > since)
            for relay in servers.list_relays(tx, request.project)
        ]
    }


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a relay and revoke its key. Its agents keep their keys, but need another URL."""
    relay = servers.get_relay(tx, request.path["relay"], request.project)
    relay_service.delete(tx, relay)
    _describe(request, relay)


def _check(body: NewRelay) -> tuple[str, str | None]:
    """Return the URL and the certificates. Raises Invalid."""
    if not isinstance(body.name, str) or not re.fullmatch(_NAME, body.name):
        raise Invalid(
            f"{body.name!r:.100} is no name of a relay: it begins with a letter or a digit, and has at most 63 letters,"
            " digits, dots, hyphens and underscores"
        )
    if not _URL.fullmatch(body.url) or not has_host(body.url):
        raise Invalid(f"{body.url!r:.100} is no URL of a relay, such as https://relay.example:8005")
    if body.ca:
        _check_ca(body.ca)
    return body.url.rstrip("/"), body.ca or None


def _check_ca(text: str) -> None:
    """Raise Invalid unless the text has certificates in PEM."""
    if len(text) > _LONGEST_CA:
        raise Invalid(f"ca has more than {_LONGEST_CA} characters: pass only the certificate of the relay's CA")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise Invalid("ca has no certificates in PEM: pass the certificate of the relay's CA") from None


def _describe(request: RequestContext, relay: Relay) -> None:
    """Name the relay for the audit log."""
    request.subject.detail = f"{relay.name} ({relay.id}) at {relay.url}"
