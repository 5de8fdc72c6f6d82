"""Creates the provider ``openstack`` with its drivers, credentials and jobs."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.backends.reconciler import Reconciler
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.work import Work
from stoker_openstack.cloud.controller import CloudController
from stoker_openstack.cloud.credentials import SiteCredentials, require_entry
from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials
from stoker_openstack.cloud.drivers.base import Driver, Registry
from stoker_openstack.cloud.drivers.container import ContainerDriver
from stoker_openstack.cloud.drivers.floating_ips import FloatingIpAssociationDriver, PortForwardDriver
from stoker_openstack.cloud.drivers.image import ImageDriver
from stoker_openstack.cloud.drivers.keypair import KeypairDriver
from stoker_openstack.cloud.drivers.network import NeutronDriver, PortDriver
from stoker_openstack.cloud.drivers.routers import ExtraRouteSetDriver, RouterGatewayDriver, RouterInterfaceDriver
from stoker_openstack.cloud.drivers.secret import SecretDriver
from stoker_openstack.cloud.drivers.security_group import SecurityGroupDriver, SecurityGroupRuleDriver
from stoker_openstack.cloud.drivers.server import ServerDriver
from stoker_openstack.cloud.drivers.volume import VolumeDriver
from stoker_openstack.cloud.drivers.volume_attachment import VolumeAttachmentDriver
from stoker_openstack.cloud.drivers.volume_type import VolumeEncryptionDriver, VolumeTypeDriver
from stoker_openstack.cloud.late_objects import LATE_OBJECTS, LateObjects
from stoker_openstack.cloud.markers import site_id
from stoker_openstack.cloud.openstack_cloud import OpenStackCloud
from stoker_openstack.cloud.polling import StatePoller
from stoker_openstack.cloud.recorder import JOBS, POLL, CloudContext
from stoker_openstack.cloud.refresh import Refresher
from stoker_openstack.model import CloudKind

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
        KeypairDriver(),
        *(NeutronDriver(kind) for kind in _PLAIN),
        PortDriver(),
        RouterInterfaceDriver(),
        RouterGatewayDriver(),
        ExtraRouteSetDriver(),
        FloatingIpAssociationDriver(),
        PortForwardDriver(),
        SecurityGroupDriver(),
        SecurityGroupRuleDriver(),
        VolumeDriver(),
        VolumeAttachmentDriver(),
        VolumeTypeDriver(),
        VolumeEncryptionDriver(),
        ImageDriver(),
        ContainerDriver(),
        SecretDriver(),
    ]
    return Registry({driver.kind: driver for driver in drivers})


def start_openstack(openstack: OpenStack, store: Store, work: Work) -> None:
    """Register and start the jobs."""
    credentials, site = openstack.credentials, openstack.site
    late_objects = LateObjects(store, work, credentials, site)
    work.register(LATE_OBJECTS, late_objects.delete, threads=1)
    refresher = Refresher(store, work, credentials, openstack.registry)
    context = CloudContext(store, work, credentials, openstack.registry, site, late_objects, refresher)
    controllers = {service: CloudController(context, service) for service in openstack.registry.services}
    Reconciler(store, work, controllers, JOBS).start()
    work.register(POLL, StatePoller(context).poll, threads=2)
