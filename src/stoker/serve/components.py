"""The components of an application, each created from the settings and the components below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import resources, transports
from stoker.backends import factory
from stoker.backends.cloud.factory import OpenStack, create_openstack
from stoker.backends.cloud.owner_login import OwnerLogin
from stoker.backends.factory import ExternalServices
from stoker.backends.keystone_users import KeystoneUsers
from stoker.backends.remote_heat import RemoteHeatClient, regions_of
from stoker.deployments.documents import Documents
from stoker.deployments.env import RunListeners
from stoker.embedded import EmbeddedMessaging, EmbeddedObjects, EmbeddedQueues, SiteKey
from stoker.hot import BudgetLimits
from stoker.identity.checks import KeyCheck, TokenCheck
from stoker.identity.directory import Directory
from stoker.identity.project_lookup import KeystoneProjects, OwnProjects, ProjectLookup
from stoker.identity.signal_tokens import CallTokens, SignalTokens
from stoker.identity.stack_users import StackUsers
from stoker.messaging import Messaging, SignedUrls, webhooks
from stoker.messaging.signed_urls import for_agents
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.targets import Targets
from stoker.objects import Objects
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.policy.rules import SiteDefaults
from stoker.resources.base import ResourceType
from stoker.resources.cloud import Cloud
from stoker.resources.env import ResourceEnv
from stoker.resources.stack_users import with_stack_users
from stoker.serve.callbacks import Callbacks
from stoker.servers import Servers
from stoker.servers.agent_bundle import AgentBundle
from stoker.servers.agent_upgrades import AgentUpgrades
from stoker.servers.keys import Keys
from stoker.servers.last_seen import LastSeen
from stoker.servers.local import LocalServers
from stoker.servers.local_cloud import LocalCloud
from stoker.servers.relays import Relays
from stoker.settings import Settings
from stoker.site import LocalPlatform
from stoker.stacks import nested
from stoker.stacks.engine import Engine, Limits
from stoker.store.open import Store
from stoker.transports import Transports
from stoker.transports.base import OBJECTS, QUEUES
from stoker.triggers.lifecycle import TriggerListener
from stoker.work import Work

if TYPE_CHECKING:
    from stoker.identity.keystone.accounts import Accounts  # optional: imported at run time in Keystone mode only


@dataclass(frozen=True, slots=True)
class Stores:
    """The database with its jobs, and the embedded services that store in it."""

    store: Store
    work: Work
    messaging: Messaging
    objects: Objects
    signed_urls: SignedUrls
    #: For the queues of resources.
    agents_urls: SignedUrls
    site_key: SiteKey


def create_stores(settings: Settings, store: Store, secret: bytes, callbacks: Callbacks) -> Stores:
    """Create the job queue, the messaging service and the object store. ``secret`` is the site secret."""
    work = Work(store)
    signed_urls, targets = SignedUrls(secret), Targets.of(settings.webhook_networks)
    confirming = settings.require_confirmation
    webhooks.register(store, work, targets, confirming=confirming)
    subscriptions = SubscriptionService(work, signed_urls, settings.public_url, targets, confirming=confirming)
    return Stores(
        store=store,
        work=work,
        messaging=Messaging(work, subscriptions, callbacks.message_posted),
        objects=Objects(store, work, callbacks.object_writing, callbacks.object_written),
        signed_urls=signed_urls,
        agents_urls=for_agents(secret),
        site_key=SiteKey(secret),
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Users, tokens and keys: Stoker's own, or Keystone's."""

    directory: Directory
    #: Derives the users of resources.
    users: StackUsers
    tokens: TokenCheck
    keys: KeyCheck
    projects: ProjectLookup
    at_keystone: bool
    #: None unless Stoker may create users at Keystone.
    accounts: Accounts | None = None
    keystone_users: KeystoneUsers | None = None


def create_identity(settings: Settings, stores: Stores, secret: bytes) -> Identity:
    """Create the identity service. Raises Invalid if the settings of Keystone mode are wrong."""
    directory = Directory(stores.store, settings.token_hours, secret, settings.max_login_failures)
    users = StackUsers(secret)
    if not settings.at_keystone:
        return Identity(directory, users, directory.tokens, directory.ec2, OwnProjects(), at_keystone=False)
    from stoker.identity.keystone.factory import open_keystone  # imported late: only Keystone mode needs it

    keystone = open_keystone(settings, stores.store, directory.ec2)
    return Identity(
        directory,
        users,
        keystone.tokens,
        keystone.keys,
        KeystoneProjects(),
        at_keystone=True,
        accounts=keystone.accounts,
        keystone_users=KeystoneUsers(stores.work) if keystone.accounts else None,
    )


@dataclass(frozen=True, slots=True)
class Backends:
    """The platform that transports use, embedded or external, and the other sites."""

    platform: LocalPlatform
    transports: Transports
    remote_heats: RemoteHeatClient
    external: ExternalServices
    call_tokens: CallTokens
    #: None if the settings name no cloud.
    openstack: OpenStack | None


def create_backends(
    settings: Settings, stores: Stores, identity: Identity, secret: bytes, ca_file: Path | None
) -> Backends:
    """
    Create the services that the settings select.

    Raises Invalid if the site lacks a default transport, or clouds.yaml the cloud of the settings.
    """
    url, call_tokens = settings.public_url, CallTokens(secret)
    token_of = identity.directory.tokens.of_project
    external = factory.create_backends(
        settings,
        stores.work,
        secret,
        stores.store.clock.now,
        token_of=token_of,
        caller=lambda id: f"{url}/signals/{call_tokens.token(id)}",
    )
    messaging = stores.messaging
    platform = LocalPlatform(
        url,
        identity.users,
        external.objects or EmbeddedObjects(stores.objects, stores.site_key, url),
        external.queues or EmbeddedQueues(messaging, stores.agents_urls, url),
        EmbeddedMessaging(messaging, stores.signed_urls, url) if settings.embeds_queues else None,
        identity_url=settings.identity_url,
        has_objects=OBJECTS not in external.missing,
        # In Keystone mode, queues need users in Keystone: templates may request them, but AUTO does not select them.
        has_queues=QUEUES not in external.missing and not identity.at_keystone,
        ca_certificates=ca_file.read_text() if ca_file else None,
    )
    site_transports = transports.load().for_site(
        settings.default_deployment_signal_transport,
        settings.default_software_config_transport,
        requires_signatures=settings.require_signed_transports,
        missing_services=external.missing,
    )
    own_tokens = None if identity.at_keystone else token_of
    openstack = create_openstack(settings, stores.store, stores.work, secret)
    delegations = openstack.delegations if openstack is not None else None
    heats = RemoteHeatClient(
        url,
        platform.region,
        regions_of(settings.remote_heats),
        own_tokens,
        ca_file,
        owner_login=OwnerLogin(delegations) if delegations is not None else None,
    )
    return Backends(platform, site_transports, heats, external, call_tokens, openstack)


def create_servers(
    settings: Settings, stores: Stores, secret: bytes, ca_file: Path | None, callbacks: Callbacks
) -> Servers:
    """Create the keys and heartbeats of servers, and the local provider if the settings enable it."""
    keys, url = Keys(stores.store, secret), settings.public_url
    local = None
    if settings.local_servers_unsafe:
        local = LocalServers(
            stores.store,
            stores.work,
            keys,
            settings.state_dir / "local",
            url,
            ca_file,
            on_started=callbacks.server_started,
            on_failed=callbacks.server_failed,
        )
    bundle = AgentBundle(url, ca_file)
    upgrades = AgentUpgrades(bundle, keys, is_automatic=settings.agent_update == "AUTOMATIC")
    last_seen = LastSeen(
        stores.store, settings.heartbeat_seconds, settings.offline_after, on_seen=upgrades.observe_version
    )
    return Servers(
        keys,
        last_seen,
        bundle,
        upgrades,
        Relays(stores.store, settings.heartbeat_seconds),
        local,
    )


def create_documents(settings: Settings, store: Store, servers: Servers) -> Documents:
    """Create the cache of the servers' documents."""
    return Documents(
        store,
        log_bytes=settings.max_log_bytes,
        heartbeat=settings.heartbeat_seconds,
        offer_program=servers.agent_upgrades.offer,
    )


def create_engine(
    settings: Settings, stores: Stores, identity: Identity, backends: Backends, servers: Servers, tokens: SignalTokens
) -> Engine:
    """Create the stack engine with all resource types."""
    env = ResourceEnv(
        transports=backends.transports,
        work=stores.work,
        compute=servers.compute,
        signal_tokens=tokens,
        platform=backends.platform,
        remote_heats=backends.remote_heats,
        projects=identity.projects,
        keys=servers.keys,
        authorizer=DeploymentAuthorizer(
            stores.work, SiteDefaults(allow=settings.deployment_policy, hooks=settings.delivered_hooks)
        ),
        cloud=_choose_cloud(settings, stores, backends),
        stack_users=identity.keystone_users,
        delegations=backends.openstack.delegations if backends.openstack else None,
        listeners=RunListeners(trigger=TriggerListener()),
    )
    limits = Limits(
        resources_per_stack=settings.max_resources_per_stack,
        stacks_per_project=settings.max_stacks_per_project,
        deployments_per_project=settings.max_software_deployments,
        action_timeout=settings.stack_action_timeout,
        log_bytes=settings.max_log_bytes,
        budget=BudgetLimits(weight=settings.max_template_values),
    )
    return nested.create_engine(_load_types(identity, backends), env, limits)


def _choose_cloud(settings: Settings, stores: Stores, backends: Backends) -> Cloud | None:
    """Return the cloud of one machine for local servers, otherwise the cloud of the settings, if any."""
    if settings.local_servers_unsafe:
        return LocalCloud(stores.objects, settings.public_url)
    return backends.openstack.cloud if backends.openstack is not None else None


def _load_types(identity: Identity, backends: Backends) -> Mapping[str, ResourceType]:
    types = resources.load()
    if not identity.at_keystone and not backends.external.queues:
        return types
    queues = backends.platform.queues
    return with_stack_users(types, backends.transports, queues, identity.keystone_users, users=identity.at_keystone)
