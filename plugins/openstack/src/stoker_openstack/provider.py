"""The provider ``openstack``: the simulated cloud of local servers, or the cloud of the settings with its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from stoker.backends.provider import Provider, ProviderSite
from stoker.backends.reconciler import Reconciler
from stoker.model.stack import Status
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud import orphans
from stoker_openstack.cloud.constraints import CloudConstraints
from stoker_openstack.cloud.context import JOBS, POLL, CloudContext
from stoker_openstack.cloud.controller import CloudController
from stoker_openstack.cloud.credentials import SiteCredentials, require_entry
from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials
from stoker_openstack.cloud.drivers import cinder, neutron, neutron_relations, small
from stoker_openstack.cloud.drivers.base import ABANDONED, GIVEN_UP, SENT_AT, Driver
from stoker_openstack.cloud.drivers.server import ServerDriver
from stoker_openstack.cloud.markers import site_id
from stoker_openstack.cloud.orphans import LateObjects
from stoker_openstack.cloud.polling import Refresher, StatePoller
from stoker_openstack.cloud.recorder import Recorder
from stoker_openstack.model import Cloud, CloudAction, CloudKind, CloudObject
from stoker_openstack.simulated.provider import LocalCloud
from stoker_openstack.store import cloud_objects
from stoker_openstack.types import adoption
from stoker_openstack.types.implicit_dependencies import imply_dependencies


def create(site: ProviderSite) -> Provider | None:
    """
    Return what the provider offers to the site; None if the settings name neither local servers nor a cloud.

    Raises Invalid if clouds.yaml lacks the cloud of the settings.
    """
    if site.settings.local_servers_unsafe:
        return Provider(
            offered={Cloud: LocalCloud(site.settings.public_url)},
            refuse_owned=adoption.refuse_owned,
            imply_dependencies=imply_dependencies,
        )
    context = create_context(site.settings, site.store, site.work, site.secret)
    return None if context is None else _offer(context)


def _offer(context: CloudContext) -> Provider:
    credentials = context.credentials
    delegations = credentials if isinstance(credentials, DelegatedCredentials) else None
    owner_login = None
    if delegations is not None:
        from stoker_openstack.cloud.owner_login import OwnerLogin  # only with users at a Keystone

        owner_login = partial(OwnerLogin, delegations)
    return Provider(
        offered={Cloud: OpenStackCloud(context)},
        delegations=delegations,
        owner_login=owner_login,
        open_constraints=lambda *login: CloudConstraints(partial(credentials.open_project, *login)),
        refuse_missing=adoption.refuse_missing,
        refuse_owned=adoption.refuse_owned,
        imply_dependencies=imply_dependencies,
        collect_garbage=partial(orphans.collect_all, context.store, credentials, context.site),
        start=partial(start, context),
    )


#: The kinds of Neutron's objects that need no driver of their own.
_PLAIN = (CloudKind.NETWORK, CloudKind.SUBNET, CloudKind.ROUTER, CloudKind.FLOATING_IP)


def create_context(settings: Settings, store: Store, work: Work, secret: bytes) -> CloudContext | None:
    """
    Return what the jobs of the cloud share; None if the settings name no cloud. ``secret`` is the site secret.

    With users at a Keystone, each stack uses the cloud of that Keystone in its own project, unless ``cloud`` is set.
    Raises Invalid if clouds.yaml lacks the cloud.
    """
    credentials: SiteCredentials | DelegatedCredentials
    if settings.cloud:
        require_entry(settings.cloud)
        credentials = SiteCredentials(settings.cloud)
    elif settings.at_keystone and not settings.local_servers_unsafe:
        credentials = DelegatedCredentials(settings, store, work, site_id(secret))
    else:
        return None
    return CloudContext(store, work, credentials, create_drivers(), site_id(secret))


def create_drivers() -> Mapping[CloudKind, Driver]:
    """Return all drivers, by kind of objects."""
    drivers: list[Driver] = [
        ServerDriver(),
        *(neutron.NeutronDriver(kind) for kind in _PLAIN),
        neutron.PortDriver(CloudKind.PORT),
        neutron.SecurityGroupDriver(CloudKind.SECURITY_GROUP),
        neutron.SecurityGroupRuleDriver(),
        neutron_relations.RouterInterfaceDriver(),
        neutron_relations.RouterGatewayDriver(),
        neutron_relations.ExtraRouteSetDriver(),
        neutron_relations.FloatingIpAssociationDriver(),
        neutron_relations.PortForwardDriver(),
        cinder.VolumeDriver(),
        cinder.VolumeAttachmentDriver(),
        cinder.VolumeTypeDriver(),
        cinder.VolumeEncryptionDriver(),
        small.KeypairDriver(),
        small.ImageDriver(),
        small.ContainerDriver(),
        small.SecretDriver(),
    ]
    return {driver.kind: driver for driver in drivers}


def start(context: CloudContext) -> None:
    """Register and start the jobs."""
    recorder = Recorder(context, LateObjects(context), Refresher(context))
    controllers = {service: CloudController(context, recorder, service) for service in context.services}
    Reconciler(context.store, context.work, controllers, JOBS).start()
    context.work.register(POLL, StatePoller(context, recorder).poll, threads=2)


class OpenStackCloud:
    """Implements ``model.Cloud``."""

    def __init__(self, context: CloudContext) -> None:
        self._context = context

    def request(self, tx: Tx, wanted: CloudObject) -> CloudObject:
        """Record the desired state of an object and defer the job that applies it."""
        current = cloud_objects.find(tx, wanted.id, for_update=True)
        requested = wanted.following(current)
        if current is None:
            cloud_objects.add(tx, requested)
        else:
            requested = replace(requested, progress=_kept_progress(current))
            cloud_objects.save(tx, requested)
        self._context.request_driver(tx, requested)
        return requested

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        """Return the object of a resource; None if there is none, or if it was deleted."""
        return cloud_objects.find(tx, id)

    def forget(self, tx: Tx, id: str) -> None:
        """Drop the record of an object and leave the object itself as it is."""
        cloud_objects.retain(tx, id)


def _kept_progress(current: CloudObject) -> dict[str, Any]:
    """
    Return the notes that a newer request keeps.

    An interrupted create request remains known until its object is found or given up, as does an unfinished snapshot
    until it is deleted.
    """
    progress = {key: current.progress[key] for key in (SENT_AT, GIVEN_UP, ABANDONED) if key in current.progress}
    if current.action is CloudAction.SNAPSHOT and current.status is Status.IN_PROGRESS:
        progress[ABANDONED] = [*progress.get(ABANDONED, ()), current.desired_generation]
    return progress
