"""The provider ``openstack``: its cloud as the resource types use it, its drivers, credentials and jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.backends.reconciler import Reconciler, request
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Status
from stoker.settings import Settings
from stoker.store import stacks
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.context import JOBS, POLL, CloudContext
from stoker_openstack.cloud.controller import CloudController
from stoker_openstack.cloud.credentials import SiteCredentials, require_entry
from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials
from stoker_openstack.cloud.drivers import cinder, neutron, neutron_relations, small
from stoker_openstack.cloud.drivers.base import ABANDONED, GIVEN_UP, SENT_AT, Driver, Registry
from stoker_openstack.cloud.drivers.server import ServerDriver
from stoker_openstack.cloud.late_objects import LateObjects
from stoker_openstack.cloud.markers import site_id
from stoker_openstack.cloud.polling import StatePoller
from stoker_openstack.cloud.recorder import Recorder
from stoker_openstack.cloud.refresh import Refresher
from stoker_openstack.model import CloudAction, CloudKind, CloudObject, CloudRequest
from stoker_openstack.store import cloud_objects

#: The kinds of Neutron's objects that need no driver of their own.
_PLAIN = (CloudKind.NETWORK, CloudKind.SUBNET, CloudKind.ROUTER, CloudKind.FLOATING_IP)


@dataclass(frozen=True, slots=True)
class OpenStack:
    """The provider: what resource types use, and what its jobs need."""

    cloud: OpenStackCloud
    credentials: SiteCredentials | DelegatedCredentials
    registry: Registry
    site: str

    @property
    def delegations(self) -> DelegatedCredentials | None:
        """The delegations of stacks; None if all stacks share one login."""
        return self.credentials if isinstance(self.credentials, DelegatedCredentials) else None


def create_openstack(settings: Settings, store: Store, work: Work, secret: bytes) -> OpenStack | None:
    """
    Create the provider; None if the settings name no cloud. ``secret`` is the site secret.

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
    registry = create_registry()
    return OpenStack(OpenStackCloud(work, registry), credentials, registry, site_id(secret))


def create_registry() -> Registry:
    """Return all drivers."""
    drivers: list[Driver] = [
        ServerDriver(),
        *(neutron.NeutronDriver(kind) for kind in _PLAIN),
        neutron.PortDriver(),
        neutron.SecurityGroupDriver(),
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
    return Registry({driver.kind: driver for driver in drivers})


def start_openstack(openstack: OpenStack, store: Store, work: Work) -> None:
    """Register and start the jobs."""
    context = CloudContext(store, work, openstack.credentials, openstack.registry, openstack.site)
    recorder = Recorder(context, LateObjects(context), Refresher(context))
    controllers = {service: CloudController(context, recorder, service) for service in openstack.registry.services}
    Reconciler(store, work, controllers, JOBS).start()
    work.register(POLL, StatePoller(context, recorder).poll, threads=2)


class OpenStackCloud:
    """Implements ``interface.Cloud``."""

    def __init__(self, work: Work, registry: Registry) -> None:
        self._work = work
        self._registry = registry

    def request(self, tx: Tx, request: CloudRequest) -> CloudObject:
        """Record the desired state of an object and defer the job that applies it."""
        current = cloud_objects.find(tx, request.id, for_update=True)
        if current is None:
            requested = request.apply_to(None, _root_of(tx, request.stack_id))
            cloud_objects.add(tx, requested)
        else:
            requested = replace(request.apply_to(current, current.root_id), progress=_kept_progress(current))
            cloud_objects.save(tx, requested)
        self._defer(tx, requested)
        return requested

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        """Return the object of a resource; None if there is none, or if it was deleted."""
        return cloud_objects.find(tx, id)

    def forget(self, tx: Tx, id: str) -> None:
        """Drop the record of an object and leave the object itself as it is."""
        cloud_objects.retain(tx, id)

    def _defer(self, tx: Tx, item: CloudObject) -> None:
        request(self._work, tx, self._registry.service_of(item.kind), item.id, JOBS)


def _root_of(tx: Tx, stack_id: str) -> str:
    stack = stacks.find(tx, stack_id)
    if stack is None:
        raise EntityNotFound.of("Stack", stack_id)
    return stack.root_id


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
