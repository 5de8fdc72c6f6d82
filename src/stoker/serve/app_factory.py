"""The app factory: creates all components as the settings require."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from stoker.backends import factory, garbage_collector
from stoker.backends.cloud import sweep
from stoker.backends.cloud.factory import create_openstack, start_openstack
from stoker.backends.garbage_collector import CollectedObject
from stoker.backends.keystone_users import KeystoneUserController
from stoker.backends.result_polling import ResultPoller
from stoker.http.agent_batches import AgentBatches
from stoker.http.app import App
from stoker.http.asgi import create_asgi_app
from stoker.http.health_report import HealthReport
from stoker.http.routes import list_routes
from stoker.http.stream_limits import StreamLimits
from stoker.http.waiters import Waiters
from stoker.http.worker_metrics import WorkerMetrics
from stoker.identity.signal_tokens import SignalTokens
from stoker.identity.tokens import Tokens
from stoker.late_bound import LateBound
from stoker.objects import Objects
from stoker.serve.callbacks import Callbacks, create_callbacks
from stoker.serve.components import (
    Backends,
    Identity,
    Stores,
    create_backends,
    create_documents,
    create_engine,
    create_identity,
    create_servers,
    create_stores,
)
from stoker.settings import Settings
from stoker.stacks import jobs
from stoker.stacks.engine import Engine
from stoker.store.open import Store
from stoker.triggers import jobs as trigger_jobs
from stoker.triggers import retention as trigger_retention
from stoker.work import Work
from stoker.work.retention import Kind, Retention


@dataclass(frozen=True, slots=True)
class Application:
    """A complete application, ready to be served. ``asgi_app`` answers requests; ``retention`` deletes old records."""

    app: App
    asgi_app: ASGIApp
    retention: Retention


def create_app(
    settings: Settings, store: Store, secret: bytes, *, ca_file: Path | None = None, worker: WorkerMetrics | None = None
) -> Application:
    """
    Create the application.

    ``secret`` is the site secret, from which keys and signatures derive. ``ca_file`` holds the CA certificates (PEM)
    that clients need to verify ``public_url``; None if their systems trust the CA already. ``worker`` exchanges
    metrics with the other worker processes; None: there is one process.

    Raises Invalid if the settings contradict each other.
    """
    late_engine = LateBound[Engine]("engine")
    callbacks, signal_tokens = create_callbacks(store, late_engine), SignalTokens(secret)
    stores = create_stores(settings, store, secret, callbacks)
    identity = create_identity(settings, stores, secret)
    servers = create_servers(settings, stores, secret, ca_file, callbacks)
    backends = create_backends(settings, stores, identity, secret, ca_file)
    engine = create_engine(settings, stores, identity, backends, servers, signal_tokens)
    late_engine.bind(engine)
    retention = _register_jobs(settings, store, stores.work, engine)
    documents = create_documents(settings, store, servers)
    app = App(
        settings=settings,
        store=store,
        started_at=store.clock.now(),
        identity=identity.directory,
        tokens=identity.tokens,
        keys=identity.keys,
        signal_tokens=signal_tokens,
        waiters=Waiters(store.notifier),
        streams=StreamLimits(settings.max_streams_per_token, settings.max_streams_per_project),
        documents=documents,
        agent_batches=AgentBatches(store, engine, servers.last_seen, documents, servers.keys),
        work=stores.work,
        servers=servers,
        engine=engine,
        messaging=stores.messaging,
        signed_urls=stores.signed_urls,
        agents_urls=stores.agents_urls,
        objects=stores.objects,
        site_key=stores.site_key,
        call_tokens=backends.call_tokens,
        health=HealthReport({"database": store.probe.check, "notifications": store.check_notifications}),
        cloud_credentials=backends.openstack.credentials if backends.openstack else None,
        worker=worker,
        delegations=backends.openstack.delegations if backends.openstack else None,
        result_poller=_start_backends(stores, identity, backends, callbacks),
    )
    return Application(app, create_asgi_app(app, list_routes(settings)), retention)


def _register_jobs(settings: Settings, store: Store, work: Work, engine: Engine) -> Retention:
    jobs.register(store, engine)
    trigger_jobs.register(store, engine)
    ended_triggers = Kind("triggers", "ended triggers", lambda store, at: trigger_retention.purge(store, engine, at))
    return Retention(store, work, settings.retention_days, (ended_triggers,))


def _start_backends(
    stores: Stores, identity: Identity, backends: Backends, callbacks: Callbacks
) -> ResultPoller | None:
    store, work, users = stores.store, stores.work, None
    if identity.accounts is not None:
        users = KeystoneUserController(store, work, identity.accounts, identity.users, callbacks.user_settled)
    if backends.openstack is not None:
        start_openstack(backends.openstack, store, work, callbacks.cloud_changed)
    return factory.start_backends(
        backends.external, users, store, work, on_signal=callbacks.result_received, on_signed=callbacks.url_signed
    )


def collect_garbage(settings: Settings, store: Store, secret: bytes, *, dry_run: bool) -> Iterator[CollectedObject]:
    """
    Delete queues, containers and objects whose resource no longer exists, and yield each of them.

    Includes those in external services and at the cloud of the settings. With ``dry_run``, only yield them.
    ``secret`` is the site secret. Safe to call while another process serves.
    """
    work, tokens = Work(store), Tokens(store, settings.token_hours)
    external = factory.create_backends(settings, work, secret, store.clock.now, token_of=tokens.of_project)
    try:
        yield from garbage_collector.collect(store, Objects(store, work), external.drivers, dry_run=dry_run)
        openstack = create_openstack(settings, store, work, secret)
        if openstack is not None:
            yield from sweep.collect_all(store, openstack.credentials, openstack.site, dry_run=dry_run)
    finally:
        for driver in external.drivers.values():
            driver.close()
