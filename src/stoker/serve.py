"""The only place where the rooms are joined: one process, from settings to answering."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import sqlalchemy as sa
import structlog
import uvicorn
from starlette.types import ASGIApp

from stoker import resources, transports
from stoker.deployments.documents import Documents
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
from stoker.messaging.subscribing import Subscribing
from stoker.model.errors import Conflict, Invalid, Unavailable
from stoker.objects import Objects
from stoker.resources.logging_in import with_logins
from stoker.resources.services import Compute, Owner
from stoker.resources.services import Services as ResourceServices
from stoker.servers import Servers
from stoker.servers.keys import Keys
from stoker.servers.local import LocalServers
from stoker.servers.presence import Presence
from stoker.servers.program import Program
from stoker.settings import Settings
from stoker.site import ThisSite
from stoker.stacks import jobs, nested
from stoker.stacks.arrivals import Arrivals
from stoker.stacks.closing import wake_resource
from stoker.stacks.engine import Limits
from stoker.store import migrate
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS as OBJECT_STORE
from stoker.transports.base import QUEUES
from stoker.work import open_work

if TYPE_CHECKING:
    from stoker.identity.keystone.joined import Keystone  # an extra: imported for real in its mode alone

_log = structlog.get_logger("stoker.serve")

#: Seconds that requests under way get when the server is told to stop.
_LAST_REQUESTS = 2


def open_store(settings: Settings) -> Store:
    """The migrated store. Raises Invalid, Unavailable, or Conflict for a database newer than this program."""
    try:
        store = Store(settings.database_url)
        migrate.upgrade(store.engine)
    except (sa.exc.ArgumentError, ValueError) as error:  # the latter for a port that is no number
        shown = re.sub(r"(:[^:@/]*):.*@", r"\1:***@", settings.database_url)
        raise Invalid(f"cannot use the database URL {shown!r}: {error}") from None
    except sa.exc.SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise Unavailable(f"cannot open the database: {cause}") from None
    return store


def lock(settings: Settings) -> int:
    """Hold the state directory. Raises Conflict when another process does."""
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(settings.state_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise Conflict(
            f"another stoker serves from {settings.state_dir}: stop it, or choose another --state-dir"
        ) from None
    return file


def has_secret(settings: Settings) -> bool:
    """Whether the site's secret is kept in the state directory already."""
    return _secret_file(settings).exists()


def _secret_file(settings: Settings) -> Path:
    return settings.state_dir / "keys" / "site.key"


def site_secret(settings: Settings) -> bytes:
    """What agents' keys derive from: set, or made once and kept."""
    if settings.secret_key:
        return settings.secret_key.encode()
    path = _secret_file(settings)
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    return path.read_bytes()


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
        action_timeout=settings.stack_action_timeout,
    )
    signed_urls = SignedUrls(secret)
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
        external.queues or EmbeddedQueues(messaging),
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
    for_types = ResourceServices(carriers, work, compute, signal_tokens, site, heats, logins)
    types = resources.load()
    if keystone:
        types = with_logins(types, for_types.transports, logins)
    engine = nested.engine(types, for_types, limits)
    jobs.register(store, engine)
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
        documents=Documents(store),
        work=work,
        servers=Servers(keys, Presence(store), Program(settings.state_dir / "agent", settings.public_url), local),
        engine=engine,
        messaging=messaging,
        signed_urls=signed_urls,
        objects=objects,
        site_key=site_key,
        call_tokens=call_tokens,
        looking=begin(external, store, work, arrivals.lodged),
    )
    faces = [*health.ROUTES, *OPENAPI, *AGENT, *HEAT, *CFN, *SIGNALS, *(IDENTITY if keystone is None else ())]
    faces += [*(MESSAGING if settings.embeds_queues else ()), *(OBJECTS if settings.embeds_objects else ())]
    return Joined(services, app(services, faces))


def listen(settings: Settings) -> socket.socket:
    """Raises Unavailable when the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise Unavailable(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None
    listening.listen(4096)
    return listening


class _Server(uvicorn.Server):
    """Lets long polls go before uvicorn waits for what is under way."""

    def __init__(self, config: uvicorn.Config, waiters: Waiters) -> None:
        super().__init__(config)
        self._waiters = waiters

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._waiters.close()
        await super().shutdown(sockets)


def run(joined: Joined, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then leave everything in order."""
    services = joined.services
    config = uvicorn.Config(
        joined.app,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # links come from public_url, whoever stands in front
        timeout_graceful_shutdown=_LAST_REQUESTS,
        timeout_keep_alive=75,
        backlog=4096,
    )
    server = _Server(config, services.waiters)
    services.store.hear()
    services.work.start()
    if services.servers.local:
        services.servers.local.resume()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, _already_stopping)
    try:
        ready()
        server.run(sockets=[listening])
    finally:
        if services.servers.local:
            services.servers.local.shut_down()
        services.work.stop()
        services.store.close()
        _log.info("stopped")


def _already_stopping(_: int, __: FrameType | None) -> None:
    """uvicorn repeats the signal that it stopped for; by then there is nothing left to do."""


def admin_file(state_dir: Path) -> Path:
    """Where the administrator's login of this installation is kept."""
    return state_dir / "admin.json"
