"""The entry point of the server: creates the simulated cloud of local servers, or the cloud of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from stoker.backends.garbage_collector import CollectedObject
from stoker.backends.provider import Provider, ProviderSite
from stoker_openstack.cloud import sweep
from stoker_openstack.cloud.constraints import CloudConstraints
from stoker_openstack.cloud.factory import OpenStack, create_openstack, start_openstack
from stoker_openstack.interface import Cloud
from stoker_openstack.simulated import LocalCloud
from stoker_openstack.types import adoption
from stoker_openstack.types.implicit_dependencies import imply_dependencies


def create(site: ProviderSite) -> Provider | None:
    """
    Return what the provider offers to the site; None if the settings name neither local servers nor a cloud.

    Raises Invalid if clouds.yaml lacks the cloud of the settings.
    """
    settings = site.settings
    if settings.local_servers_unsafe:
        return Provider(
            offered={Cloud: LocalCloud(settings.public_url)},
            refuse_owned=adoption.refuse_owned,
            imply_dependencies=imply_dependencies,
        )
    openstack = create_openstack(settings, site.store, site.work, site.secret)
    return None if openstack is None else _offer(site, openstack)


def _offer(site: ProviderSite, openstack: OpenStack) -> Provider:
    delegations, credentials = openstack.delegations, openstack.credentials

    def open_constraints(token: str, project_id: str) -> CloudConstraints:
        return CloudConstraints(lambda: credentials.open_project(token, project_id))

    def collect_garbage(dry_run: bool) -> Iterator[CollectedObject]:
        return sweep.collect_all(site.store, credentials, openstack.site, dry_run=dry_run)

    owner_login = None
    if delegations is not None:
        from stoker_openstack.cloud.owner_login import OwnerLogin  # only with users at a Keystone

        owner_login = partial(OwnerLogin, delegations)
    return Provider(
        offered={Cloud: openstack.cloud},
        delegations=delegations,
        owner_login=owner_login,
        open_constraints=open_constraints,
        refuse_missing=adoption.refuse_missing,
        refuse_owned=adoption.refuse_owned,
        imply_dependencies=imply_dependencies,
        collect_garbage=collect_garbage,
        start=partial(start_openstack, openstack, site.store, site.work),
    )
