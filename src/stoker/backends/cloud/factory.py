"""Creates the provider ``openstack`` with its drivers, credentials and jobs."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.backends.cloud.controller import JOBS, POLL, CloudContext, CloudController, OnSettled
from stoker.backends.cloud.credentials import SiteCredentials, require_entry
from stoker.backends.cloud.drivers.base import Driver, Registry
from stoker.backends.cloud.drivers.container import ContainerDriver
from stoker.backends.cloud.drivers.image import ImageDriver
from stoker.backends.cloud.drivers.keypair import KeypairDriver
from stoker.backends.cloud.drivers.network import NEUTRON_KINDS, NeutronDriver
from stoker.backends.cloud.drivers.relations import FloatingIpAssociationDriver, RouterInterfaceDriver
from stoker.backends.cloud.drivers.secret import SecretDriver
from stoker.backends.cloud.drivers.security_group import SecurityGroupDriver, SecurityGroupRuleDriver
from stoker.backends.cloud.drivers.server import ServerDriver
from stoker.backends.cloud.drivers.volume import VolumeDriver
from stoker.backends.cloud.drivers.volume_attachment import VolumeAttachmentDriver
from stoker.backends.cloud.markers import site_id
from stoker.backends.cloud.openstack_cloud import OpenStackCloud
from stoker.backends.cloud.polling import StatePoller
from stoker.backends.cloud.trusts import TrustCredentials
from stoker.backends.reconciler import Reconciler
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.work import Work


@dataclass(frozen=True, slots=True)
class OpenStack:
    """The provider: what resource types use, and what its jobs need."""

    cloud: OpenStackCloud
    credentials: SiteCredentials | TrustCredentials
    registry: Registry
    site: str

    @property
    def trusts(self) -> TrustCredentials | None:
        """The trusts of stacks; None if all stacks share one login."""
        return self.credentials if isinstance(self.credentials, TrustCredentials) else None


def create_openstack(settings: Settings, store: Store, work: Work, secret: bytes) -> OpenStack | None:
    """
    Create the provider; None if the settings name no cloud. ``secret`` is the site secret.

    With users at a Keystone, each stack uses the cloud of that Keystone in its own project, unless ``cloud`` is set.
    Raises Invalid if clouds.yaml lacks the cloud.
    """
    credentials: SiteCredentials | TrustCredentials
    if settings.cloud:
        require_entry(settings.cloud)
        credentials = SiteCredentials(settings.cloud)
    elif settings.at_keystone and not settings.local_servers_unsafe:
        credentials = TrustCredentials(settings, store, work)
        credentials.register()
    else:
        return None
    registry = create_registry()
    return OpenStack(OpenStackCloud(work, registry), credentials, registry, site_id(secret))


def create_registry() -> Registry:
    """Return all drivers."""
    drivers: list[Driver] = [
        ServerDriver(),
        KeypairDriver(),
        *(NeutronDriver(kind) for kind in NEUTRON_KINDS),
        RouterInterfaceDriver(),
        FloatingIpAssociationDriver(),
        SecurityGroupDriver(),
        SecurityGroupRuleDriver(),
        VolumeDriver(),
        VolumeAttachmentDriver(),
        ImageDriver(),
        ContainerDriver(),
        SecretDriver(),
    ]
    return Registry({driver.kind: driver for driver in drivers})


def start_openstack(openstack: OpenStack, store: Store, work: Work, on_settled: OnSettled) -> None:
    """Register and start the jobs. ``on_settled`` checks a resource whose object has changed."""
    context = CloudContext(store, work, openstack.credentials, openstack.registry, openstack.site, on_settled)
    controllers = {service: CloudController(context, service) for service in openstack.registry.services}
    Reconciler(store, work, controllers, JOBS).start()
    work.register(POLL, StatePoller(context).poll, threads=2)
