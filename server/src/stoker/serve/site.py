"""Builds all components of one server process, from the bottom up, as the settings require."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp

from stoker import transports, types
from stoker.backends import factory, garbage_collector, provider
from stoker.backends.garbage_collector import CollectedObject
from stoker.backends.keystone_users import KeystoneUserController, KeystoneUsers
from stoker.backends.provider import Provider, ProviderSite
from stoker.backends.remote_heat import RemoteHeatClient, regions_of
from stoker.backends.result_polling import ResultPoller
from stoker.deployments.documents import Documents
from stoker.embedded import EmbeddedObjects, EmbeddedQueues, SiteKey
from stoker.http.agent.batches import AgentBatches
from stoker.http.apis import list_apis
from stoker.http.app import App
from stoker.http.application import Application
from stoker.http.console.session import Sessions
from stoker.http.event_stream import Streams
from stoker.http.health import CertificateExpiry, Check, DiskSpace, HealthReport
from stoker.http.hold import Waiters
from stoker.http.metrics import WorkerMetrics
from stoker.identity.administration import check_keystone_project, find_own_project
from stoker.identity.authentication import OwnLogins
from stoker.identity.directory import Directory
from stoker.identity.stack_users import CallTokens, SignalTokens, StackUsers
from stoker.identity.tokens import Tokens
from stoker.messaging import Messaging, SignedUrls, webhooks
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.webhook_client import Targets
from stoker.objects.operations import WriteCallbacks
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.policy.rules import SiteDefaults
from stoker.resources.base import ResourceEnv
from stoker.serve.database import sqlite_folders
from stoker.servers import Servers
from stoker.servers.agent_bundle import AgentBundle
from stoker.servers.keys import Keys
from stoker.servers.local import LocalServers
from stoker.servers.presence import LastSeen
from stoker.servers.relays import Relays
from stoker.settings import Settings
from stoker.stacks.engine import Engine, Limits
from stoker.stacks.signals import InboundSignals
from stoker.store import site
from stoker.store.open import Store
from stoker.transports.base import OBJECTS, QUEUES, Platform
from stoker.triggers import jobs as trigger_jobs
from stoker.types.nested_stacks import TemplateType
from stoker.work import Work
from stoker.work.retention import Kind, Retention


def create_app(
    settings: Settings, store: Store, secret: bytes, *, ca_file: Path | None = None, worker: WorkerMetrics | None = None
) -> App:
    """
    Build the site. Raises Invalid if the settings contradict each other.

    ``secret`` is the site secret, from which keys and signatures derive. ``ca_file`` is that of ``Tls``. ``worker``
    exchanges metrics with the other worker processes; None: there is one process.
    """
    return _Site(settings, store, secret, ca_file).build_app(worker)


def create_asgi(app: App) -> ASGIApp:
    """Return the ASGI application that answers the requests of the site."""
    return Application(app, list_apis(app.settings))


class _Site:
    """
    The components of one site while it is built.

    The engine comes last, so lower layers notify it by closures over this object. They act in the transaction that they
    receive.
    """

    def __init__(self, settings: Settings, store: Store, secret: bytes, ca_file: Path | None) -> None:
        self._settings, self._store, self._secret, self._ca_file = settings, store, secret, ca_file
        self._work = Work(store)
        self._object_callbacks = WriteCallbacks(
            lambda tx, account, container, name: self._signals().before_object(tx, account, container, name),
            lambda tx, account, container, name, data: self._signals().object(tx, account, container, name, data),
        )
        targets = Targets.of(settings.webhook_networks)
        webhooks.register(store, self._work, targets)
        self._messaging = Messaging(
            self._work,
            SubscriptionService(targets),
            SignedUrls(secret),
            lambda tx, project_id, queue, messages: self._signals().message(tx, project_id, queue, messages),
        )
        self._agents_urls, self._site_key = SignedUrls(secret, SignedUrls.AGENTS), SiteKey(secret)
        self._signal_tokens, self._call_tokens = SignalTokens(secret), CallTokens(secret)
        self._directory = Directory(store, settings.token_hours, secret)
        self._users = StackUsers(secret)
        self._keystone = None
        if settings.at_keystone:
            # imported late: only Keystone mode needs it
            from stoker.identity.keystone.authentication import open_keystone

            self._keystone = open_keystone(settings, store)
        self._accounts = self._keystone.accounts if self._keystone else None
        self._provider = _load_provider(settings, store, self._work, secret)
        self._external = factory.create_backends(
            settings,
            self._work,
            secret,
            store.clock.now,
            token_of=self._directory.tokens.of_project,
            caller=lambda id: f"{settings.public_url}/signals/{self._call_tokens.token(id)}",
        )
        self._servers = _create_servers(settings, store, self._work, secret, ca_file)
        self._engine = self._create_engine()

    def _signals(self) -> InboundSignals:
        return InboundSignals(self._engine)

    def _create_platform(self) -> Platform:
        """Return the services that transports use, embedded or external."""
        settings, messaging, missing = self._settings, self._messaging, self._external.missing
        url = settings.public_url
        return Platform(
            url,
            self._users,
            self._external.objects or EmbeddedObjects(self._site_key, url),
            self._external.queues or EmbeddedQueues(messaging, self._agents_urls, f"{url}/messaging"),
            messaging if settings.embeds_queues else None,
            identity_url=settings.identity_url,
            has_objects=OBJECTS not in missing,
            # In Keystone mode, queues need users in Keystone: templates may request them; AUTO does not select them.
            has_queues=QUEUES not in missing and not settings.at_keystone,
            ca_certificates=self._ca_file.read_text() if self._ca_file else None,
        )

    def _create_engine(self) -> Engine:
        """Create the stack engine with all resource types. Raises Invalid if the site lacks a default transport."""
        settings, provider, platform = self._settings, self._provider, self._create_platform()
        site_transports = transports.load().for_site(
            settings.default_deployment_signal_transport,
            settings.default_software_config_transport,
            requires_signatures=settings.require_signed_transports,
            missing_services=self._external.missing,
        )
        env = ResourceEnv(
            transports=site_transports,
            work=self._work,
            compute=self._servers.compute,
            signal_tokens=self._signal_tokens,
            platform=platform,
            remote_heats=RemoteHeatClient(
                settings.public_url,
                platform.region,
                regions_of(settings.remote_heats),
                None if settings.at_keystone else self._directory.tokens.of_project,
                self._ca_file,
                owner_login=provider.owner_login,
            ),
            find_project=check_keystone_project if settings.at_keystone else find_own_project,
            keys=self._servers.keys,
            authorizer=DeploymentAuthorizer(
                self._work, SiteDefaults(allow=settings.deployment_policy, hooks=settings.delivered_hooks)
            ),
            provider=provider,
            stack_users=KeystoneUsers(self._work) if self._accounts else None,
            agents_wait=bool(settings.at_keystone or self._external.queues),
        )
        return Engine(types.load(), env, TemplateType(), _limits(settings))

    def _start_backends(self) -> ResultPoller | None:
        users = None
        if self._accounts is not None:
            users = KeystoneUserController(self._store, self._work, self._accounts, self._users)
        self._provider.start()
        return factory.start_backends(
            self._external,
            users,
            self._store,
            self._work,
            on_signal=lambda tx, name, data: self._signals().remote_result(tx, name, data),
        )

    def build_app(self, worker: WorkerMetrics | None) -> App:
        """Register the jobs and return what handlers and the server use."""
        settings, store, servers, engine = self._settings, self._store, self._servers, self._engine
        documents = Documents(store, log_bytes=settings.max_log_bytes, heartbeat=settings.heartbeat_seconds)
        disk_space = DiskSpace([settings.state_dir, *sqlite_folders(settings)])
        certificate = CertificateExpiry(settings, store.clock.now)
        tokens = self._keystone.tokens if self._keystone else self._directory.tokens
        logins = self._keystone.logins if self._keystone else OwnLogins(store, self._directory)
        return App(
            settings=settings,
            store=store,
            started_at=store.clock.now(),
            identity=self._directory,
            tokens=tokens,
            sessions=Sessions(self._secret, logins, tokens),
            signal_tokens=self._signal_tokens,
            waiters=Waiters(store.notifier),
            streams=Streams(),
            documents=documents,
            agent_batches=AgentBatches(store, engine, servers.last_seen, documents, servers.keys),
            work=self._work,
            servers=servers,
            engine=engine,
            messaging=self._messaging,
            agents_urls=self._agents_urls,
            object_callbacks=self._object_callbacks,
            site_key=self._site_key,
            call_tokens=self._call_tokens,
            health=_create_health(store, disk_space, certificate),
            disk_space=disk_space,
            certificate=certificate,
            provider=self._provider,
            worker=worker,
            retention=_register_jobs(settings, store, self._work, engine),
            result_poller=self._start_backends(),
        )


def _load_provider(settings: Settings, store: Store, work: Work, secret: bytes) -> Provider:
    return provider.load(ProviderSite(settings=settings, store=store, work=work, secret=secret))


def _create_servers(settings: Settings, store: Store, work: Work, secret: bytes, ca_file: Path | None) -> Servers:
    """Create the keys and heartbeats of servers, and the local provider if the settings enable it."""
    keys, url = Keys(store, secret), settings.public_url
    local = None
    if settings.local_servers_unsafe:
        local = LocalServers(store, work, keys, settings.state_dir / "local", url, ca_file)
    bundle = AgentBundle(url, ca_file)
    last_seen = LastSeen(store, settings.heartbeat_seconds, settings.offline_after)
    return Servers(keys, last_seen, bundle, Relays(store, settings.heartbeat_seconds), local)


def _limits(settings: Settings) -> Limits:
    return Limits(
        resources_per_stack=settings.max_resources_per_stack,
        stacks_per_project=settings.max_stacks_per_project,
        nested_depth=settings.max_nested_stack_depth,
        deployments_per_project=settings.max_software_deployments,
        action_timeout=settings.stack_action_timeout,
        log_bytes=settings.max_log_bytes,
    )


def _check_writes(store: Store) -> None:
    """Raise Unavailable if a write has failed, and writes still fail: the disk is full, for example."""
    if not store.may_write:
        store.write(lambda tx: site.replace_property(tx, "write_probe", "written"))


def _create_health(store: Store, disk_space: DiskSpace, certificate: CertificateExpiry) -> HealthReport:
    checks: dict[str, Check] = {
        "database": store.check,
        "writes": partial(_check_writes, store),
        "notifications": store.check_notifications,
    }
    return HealthReport(
        checks, {"disk": disk_space.check, "clock": store.clock.check, "certificate": certificate.check}
    )


def _register_jobs(settings: Settings, store: Store, work: Work, engine: Engine) -> Retention:
    types.register_jobs(store, engine)
    trigger_jobs.register(store, engine)
    ended_triggers = Kind("triggers", "ended triggers", lambda store, at: trigger_jobs.purge(store, engine, at))
    return Retention(store, work, settings.retention, (ended_triggers,))


def collect_garbage(settings: Settings, store: Store, secret: bytes, *, dry_run: bool) -> Iterator[CollectedObject]:
    """
    Delete queues, containers and objects whose resource no longer exists, and yield each of them.

    Includes those in external services and at the cloud of the settings. With ``dry_run``, only yield them.
    ``secret`` is the site secret. Safe to call while another process serves.
    """
    work, tokens = Work(store), Tokens(store, settings.token_hours)
    external = factory.create_backends(settings, work, secret, store.clock.now, token_of=tokens.of_project)
    try:
        yield from garbage_collector.collect(store, external.drivers, dry_run=dry_run)
        yield from _load_provider(settings, store, work, secret).collect_garbage(dry_run)
    finally:
        for driver in external.drivers.values():
            driver.close()
