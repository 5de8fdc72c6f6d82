"""The app factory: creates all components as the settings require, and connects them with callbacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from stoker import resources, transports
from stoker.backends import garbage_collector
from stoker.backends.factory import create_backends, start_backends
from stoker.backends.garbage_collector import CollectedObject
from stoker.backends.remote_heat import RemoteHeatClient, regions_of
from stoker.deployments.documents import Documents
from stoker.deployments.listeners import RunListeners
from stoker.deployments.retention import Retention
from stoker.embedded import EmbeddedMessaging, EmbeddedObjects, EmbeddedQueues, SiteKey
from stoker.hot import BudgetLimits
from stoker.http.app import App
from stoker.http.asgi import create_asgi_app
from stoker.http.health_report import HealthReport
from stoker.http.routes import list_routes
from stoker.http.stream_limits import StreamLimits
from stoker.http.waiters import Waiters
from stoker.identity.directory import Directory
from stoker.identity.project_lookup import KeystoneProjects, OwnProjects
from stoker.identity.signal_tokens import CallTokens, SignalTokens
from stoker.identity.stack_users import StackUsers
from stoker.identity.tokens import Tokens
from stoker.messaging import Messaging, SignedUrls, webhooks
from stoker.messaging.signed_urls import for_agents
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.targets import Targets
from stoker.objects import Objects
from stoker.resources.env import Compute, Owner
from stoker.resources.env import ResourceEnv as ResourceServices
from stoker.resources.server_base import with_signatures
from stoker.resources.stack_users import with_stack_users
from stoker.servers import Servers
from stoker.servers.agent_bundle import AgentBundle
from stoker.servers.keys import Keys
from stoker.servers.last_seen import LastSeen
from stoker.servers.local import LocalServers
from stoker.settings import Settings
from stoker.site import LocalPlatform
from stoker.stacks import jobs, nested, publishing
from stoker.stacks.engine import Limits
from stoker.stacks.engine.commit import wake_resource
from stoker.stacks.inbound_signals import InboundSignals
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS as OBJECT_STORE
from stoker.transports.base import QUEUES
from stoker.triggers import jobs as trigger_jobs
from stoker.triggers.lifecycle import TriggerListener
from stoker.work import Work

if TYPE_CHECKING:
    from stoker.identity.keystone.factory import Keystone  # optional: imported at run time in Keystone mode only


class LocalCompute(Compute):
    """The local provider behind the interface through which resource types create servers."""

    def __init__(self, local: LocalServers) -> None:
        self._local = local

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: Owner) -> None:
        """Start a local server for a resource; ``owner`` names the stack and the resource."""
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
        """Stop and delete a local server."""
        self._local.delete(tx, server_id)

    def address(self, server_id: str) -> str:
        """The IP address of a local server."""
        return self._local.address(server_id)


def _keystone(settings: Settings, store: Store, directory: Directory, users: StackUsers) -> Keystone:
    from stoker.identity.keystone.factory import open_keystone  # imported late: only Keystone mode needs it

    return open_keystone(settings, store, directory.ec2, users)


@dataclass(frozen=True, slots=True)
class Application:
    """A complete application, ready to be served. ``asgi_app`` answers requests; ``retention`` deletes old records."""

    app: App
    asgi_app: ASGIApp
    retention: Retention


def collect_garbage(settings: Settings, store: Store, secret: bytes, *, dry_run: bool) -> Iterator[CollectedObject]:
    """
    Delete queues, containers and objects whose resource no longer exists, and yield each of them.

    Includes those in external services. With ``dry_run``, only yield them. ``secret`` is the site secret. Safe to call
    while another process serves.
    """
    work = Work(store)
    tokens = Tokens(store, settings.token_hours)
    found = create_backends(settings, work, secret, token_of=tokens.of_project)
    try:
        yield from garbage_collector.collect(store, Objects(store, work), found.drivers, dry_run=dry_run)
    finally:
        for driver in found.drivers.values():
            driver.close()


def create_app(settings: Settings, store: Store, secret: bytes, *, ca_file: Path | None = None) -> Application:
    """
    Create the application and register all callbacks between its layers.

    ``secret`` is the site secret, from which keys and signatures derive. ``ca_file`` holds the CA certificates (PEM)
    that clients need to verify ``public_url``; None if their systems trust the CA already.
    """
    work = Work(store)
    directory = Directory(store, settings.token_hours, secret, settings.max_login_failures)
    keystone = _keystone(settings, store, directory, StackUsers(secret)) if settings.at_keystone else None
    keys, signal_tokens = Keys(store, secret), SignalTokens(secret)
    local = None
    if settings.local_servers_unsafe:
        local = LocalServers(store, work, keys, settings.state_dir / "local", settings.public_url, ca_file)
    compute = LocalCompute(local) if local else None
    limits = Limits(
        resources_per_stack=settings.max_resources_per_stack,
        stacks_per_project=settings.max_stacks_per_project,
        deployments_per_project=settings.max_software_deployments,
        action_timeout=settings.stack_action_timeout,
        log_bytes=settings.max_log_bytes,
        budget=BudgetLimits(weight=settings.max_template_values),
    )
    signed_urls, agents_urls = SignedUrls(secret), for_agents(secret)
    confirming = settings.require_confirmation
    targets = Targets.of(settings.webhook_networks)
    webhooks.register(store, work, targets, confirming=confirming)
    messaging = Messaging(
        work, SubscriptionService(work, signed_urls, settings.public_url, targets, confirming=confirming)
    )
    objects, site_key = Objects(store, work), SiteKey(secret)
    call_tokens = CallTokens(secret)
    external = create_backends(
        settings,
        work,
        secret,
        token_of=directory.tokens.of_project,
        caller=lambda id: f"{settings.public_url}/signals/{call_tokens.token(id)}",
    )
    transports.disable(*external.missing)
    site = LocalPlatform(
        settings.public_url,
        StackUsers(secret),
        external.objects or EmbeddedObjects(objects, site_key, settings.public_url),
        external.queues or EmbeddedQueues(messaging, agents_urls, settings.public_url),
        EmbeddedMessaging(messaging, signed_urls, settings.public_url) if settings.embeds_queues else None,
        identity_url=settings.identity_url,
        has_objects=OBJECT_STORE not in external.missing,
        # In Keystone mode, queues need users in Keystone: templates may request them, but AUTO does not select them.
        has_queues=QUEUES not in external.missing and keystone is None,
        ca_certificates=ca_file.read_text() if ca_file else None,
    )
    logins = keystone.logins(work) if keystone else None
    carriers = transports.load().with_defaults(
        settings.default_deployment_signal_transport,
        settings.default_software_config_transport,
        requires_signatures=settings.require_signed_transports,
    )
    own_tokens = None if keystone else directory.tokens.of_project
    heats = RemoteHeatClient(settings.public_url, site.region, regions_of(settings.remote_heats), own_tokens, ca_file)
    projects = KeystoneProjects() if keystone else OwnProjects()
    for_types = ResourceServices(
        carriers,
        work,
        compute,
        signal_tokens,
        site,
        heats,
        projects,
        keys,
        logins,
        settings.deployment_policy,
        RunListeners(trigger=TriggerListener()),
    )
    types = with_signatures(resources.load(), carriers)
    if keystone or external.queues:
        types = with_stack_users(types, for_types.transports, site.queues, logins, users=keystone is not None)
    engine = nested.create_engine(types, for_types, limits)
    jobs.register(store, engine)
    trigger_jobs.register(store, engine)
    retention = Retention(store, work, settings.log_retention_days)
    if logins:
        logins.on_settled = lambda tx, id, failure: wake_resource(tx, engine, id, failure)
    if local:
        # The id of a local server is also the id of its resource.
        local.on_started = lambda id: store.write(lambda tx: wake_resource(tx, engine, id))
        local.on_failed = lambda id, why: store.write(lambda tx: wake_resource(tx, engine, id, why))
    arrivals = InboundSignals(engine)
    messaging.on_posted = arrivals.message
    objects.port.on_writing, objects.port.on_written = arrivals.before_object, arrivals.object
    services = App(
        settings=settings,
        store=store,
        identity=directory,
        tokens=keystone.tokens if keystone else directory.tokens,
        keys=keystone.keys if keystone else directory.ec2,
        signal_tokens=signal_tokens,
        waiters=Waiters(store.notifier),
        streams=StreamLimits(settings.max_streams_per_token, settings.max_streams_per_project),
        documents=Documents(store, log_bytes=settings.max_log_bytes, heartbeat=settings.heartbeat_seconds),
        work=work,
        servers=Servers(
            keys,
            LastSeen(store, settings.heartbeat_seconds, settings.offline_after),
            AgentBundle(settings.public_url, ca_file),
            local,
        ),
        engine=engine,
        messaging=messaging,
        signed_urls=signed_urls,
        agents_urls=agents_urls,
        objects=objects,
        site_key=site_key,
        call_tokens=call_tokens,
        health=HealthReport({"database": store.probe.check, "notifications": store.check_notifications}),
        result_poller=start_backends(
            external, store, work, arrivals.remote_result, lambda tx, id: publishing.is_signed(tx, engine, id)
        ),
    )
    return Application(services, create_asgi_app(services, list_routes(settings)), retention)
