"""The rooms of the house, joined as the settings say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from stoker import resources, transports
from stoker.deployments.documents import Documents
from stoker.deployments.retention import Retention
from stoker.external import sweeping
from stoker.external.heats import Heats, regions_of
from stoker.external.joining import begin, elsewhere
from stoker.external.sweeping import Swept
from stoker.http import health
from stoker.http.agent.routes import ROUTES as AGENT
from stoker.http.app import app
from stoker.http.cfn.routes import ROUTES as CFN
from stoker.http.heat.routes import ROUTES as HEAT
from stoker.http.identity.routes import ROUTES as IDENTITY
from stoker.http.messaging.routes import ROUTES as MESSAGING
from stoker.http.objects.routes import ROUTES as OBJECTS
from stoker.http.openapi.routes import ROUTES as OPENAPI
from stoker.http.services import Services
from stoker.http.signals import ROUTES as SIGNALS
from stoker.http.waiters import Waiters
from stoker.identity.directory import Directory
from stoker.identity.signal_tokens import CallTokens, SignalTokens
from stoker.identity.stack_users import StackUsers
from stoker.identity.tokens import Tokens
from stoker.lodgings import EmbeddedMessaging, EmbeddedObjects, EmbeddedQueues, SiteKey
from stoker.messaging import Messaging, SignedUrls, webhooks
from stoker.messaging.signed_urls import for_agents
from stoker.messaging.subscribing import Subscribing
from stoker.model.errors import Invalid
from stoker.objects import Objects
from stoker.resources.logging_in import with_logins
from stoker.resources.services import Compute, Owner
from stoker.resources.services import Services as ResourceServices
from stoker.serve.installation import site_secret
from stoker.servers import Servers
from stoker.servers.keys import Keys
from stoker.servers.local import LocalServers
from stoker.servers.presence import Presence
from stoker.servers.program import Program
from stoker.settings import Settings
from stoker.site import ThisSite
from stoker.stacks import jobs, nested, publishing
from stoker.stacks.arrivals import Arrivals
from stoker.stacks.closing import wake_resource
from stoker.stacks.engine import Limits
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS as OBJECT_STORE
from stoker.transports.base import QUEUES
from stoker.work import open_work

if TYPE_CHECKING:
    from stoker.identity.keystone.joined import Keystone  # an extra: imported for real in its mode alone


class LocalCompute(Compute):
    """The local provider, as resources ask for servers."""

    def __init__(self, local: LocalServers) -> None:
        self._local = local

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: Owner) -> None:
        self._local.create(
            tx,
            server_id=server_id,
            project_id=project_id,
            name=name,
            stack_id=owner.stack_id,
            resource_id=owner.resource_id,
            resource_name=owner.resource_name,
        )

    def delete(self, tx: Tx, server_id: str) -> None:
        self._local.delete(tx, server_id)

    def address(self, server_id: str) -> str:
        return self._local.address(server_id)


def _keystone(settings: Settings, store: Store, directory: Directory, users: StackUsers) -> Keystone:
    """Raises Invalid without what that mode needs."""
    try:
        from stoker.identity.keystone.joined import open_keystone
    except ModuleNotFoundError as error:
        needed = f"identity_mode keystone needs {error.name}: pip install 'stoker[openstack]'"
        raise Invalid(needed) from None
    return open_keystone(settings, store, directory.ec2, users)


@dataclass(frozen=True, slots=True)
class Joined:
    services: Services
    app: ASGIApp
    retention: Retention


def sweep(settings: Settings, store: Store, *, dry_run: bool) -> Iterator[Swept]:
    """Take away what was made for resources that are no more; beside a Stoker that serves."""
    work = open_work(store)
    tokens = Tokens(store, settings.token_hours)
    found = elsewhere(settings, work, site_secret(settings), token_of=tokens.of_project)
    try:
        yield from sweeping.sweep(store, Objects(store, work), found.hands, dry_run=dry_run)
    finally:
        for hand in found.hands.values():
            hand.close()


def join(settings: Settings, store: Store) -> Joined:
    work = open_work(store)
    secret = site_secret(settings)
    directory = Directory(store, settings.token_hours, secret)
    keystone = _keystone(settings, store, directory, StackUsers(secret)) if settings.at_keystone else None
    keys, signal_tokens = Keys(store, secret), SignalTokens(secret)
    local = None
    if settings.local_servers:
        local = LocalServers(store, work, keys, settings.state_dir / "local", settings.public_url)
    compute = LocalCompute(local) if local else None
    limits = Limits(
        resources_per_stack=settings.max_resources_per_stack,
        stacks_per_project=settings.max_stacks_per_project,
        deployments_per_project=settings.max_software_deployments,
        action_timeout=settings.stack_action_timeout,
        log_bytes=settings.max_log_bytes,
    )
    signed_urls, agents_urls = SignedUrls(secret), for_agents(secret)
    confirming = settings.require_confirmation
    webhooks.register(store, work, confirming=confirming)
    messaging = Messaging(work, Subscribing(work, signed_urls, settings.public_url, confirming=confirming))
    objects, site_key = Objects(store, work), SiteKey(secret)
    call_tokens = CallTokens(secret)
    external = elsewhere(
        settings,
        work,
        secret,
        token_of=directory.tokens.of_project,
        caller=lambda id: f"{settings.public_url}/signals/{call_tokens.token(id)}",
    )
    transports.withhold(*external.missing)
    site = ThisSite(
        settings.public_url,
        StackUsers(secret),
        external.objects or EmbeddedObjects(objects, site_key, settings.public_url),
        external.queues or EmbeddedQueues(messaging, agents_urls, settings.public_url),
        EmbeddedMessaging(messaging, signed_urls, settings.public_url) if settings.embeds_queues else None,
        identity_url=settings.identity_url,
        has_objects=OBJECT_STORE not in external.missing,
        # At a Keystone, queues need users there: templates may ask for them, AUTO does not.
        has_queues=QUEUES not in external.missing and keystone is None,
    )
    logins = keystone.logins(work) if keystone else None
    carriers = transports.load().with_defaults(
        settings.default_deployment_signal_transport, settings.default_software_config_transport
    )
    own_tokens = None if keystone else directory.tokens.of_project
    heats = Heats(settings.public_url, site.region, regions_of(settings.remote_heats), own_tokens)
    for_types = ResourceServices(
        carriers, work, compute, signal_tokens, site, heats, logins, settings.deployment_policy
    )
    types = resources.load()
    if keystone or external.queues:
        types = with_logins(types, for_types.transports, site.queues, logins, users=keystone is not None)
    engine = nested.engine(types, for_types, limits)
    jobs.register(store, engine)
    retention = Retention(store, work, settings.log_retention_days)
    if logins:
        logins.on_settled = lambda tx, id, failure: wake_resource(tx, engine, id, failure)
    if local:
        # A local server's id is its resource's.
        local.on_started = lambda id: store.write(lambda tx: wake_resource(tx, engine, id))
        local.on_failed = lambda id, why: store.write(lambda tx: wake_resource(tx, engine, id, why))
    arrivals = Arrivals(engine)
    messaging.on_posted = arrivals.message
    objects.port.on_writing, objects.port.on_written = arrivals.before_object, arrivals.object
    services = Services(
        settings=settings,
        store=store,
        identity=directory,
        tokens=keystone.tokens if keystone else directory.tokens,
        keys=keystone.keys if keystone else directory.ec2,
        signal_tokens=signal_tokens,
        waiters=Waiters(store.bell),
        documents=Documents(store, log_bytes=settings.max_log_bytes),
        work=work,
        servers=Servers(keys, Presence(store), Program(settings.state_dir / "agent", settings.public_url), local),
        engine=engine,
        messaging=messaging,
        signed_urls=signed_urls,
        agents_urls=agents_urls,
        objects=objects,
        site_key=site_key,
        call_tokens=call_tokens,
        looking=begin(external, store, work, arrivals.lodged, lambda tx, id: publishing.signed(tx, engine, id)),
    )
    faces = [*health.ROUTES, *OPENAPI, *AGENT, *HEAT, *CFN, *SIGNALS, *(IDENTITY if keystone is None else ())]
    faces += [*(MESSAGING if settings.embeds_queues else ()), *(OBJECTS if settings.embeds_objects else ())]
    return Joined(services, app(services, faces), retention)
