"""Stacks at a real OpenStack in their user's own project, by trusts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import yaml
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from stoker.model.cloud import CloudAction, CloudKind
from stoker.model.principal import Principal
from stoker.model.status import Status
from stoker.store import delegations, stacks
from support.cloud_sites import cloud_site, real_cloud
from support.work import until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Support for InfluxDB")]
NETWORK = {"name": "t-trusted"}


@pytest.fixture
def demo():
    """A session of a plain member."""
    auth = yaml.safe_load(real_cloud().read_text())["clouds"]["peer-demo"]["auth"]
    return Session(auth=v3.Password(**auth))


@pytest.fixture
def site(tmp_path, store, demo):
    url = demo.auth.auth_url.removesuffix("/v3")
    login = {"keystone_auth_url": url, "keystone_user": "admin", "keystone_password": "admin"}
    with cloud_site(store, tmp_path, "", real_cloud(), identity_mode="keystone", **login) as running:
        running.project_id = demo.get_project_id()
        yield running


def _delegate(site, store, demo):
    principal = Principal(
        user_id=demo.get_user_id(),
        user_name="demo",
        project_id=demo.get_project_id(),
        roles=frozenset(demo.auth.get_access(demo).role_names),
        expires_at=datetime.max.replace(tzinfo=UTC),
    )
    delegation = site.provider.trusts.delegate(demo.get_token(), principal, demo.get_project_id(), site.stack_id)
    if delegation is not None:
        store.write(lambda tx: delegations.replace(tx, delegation))
    return delegation


def test_a_trust_lives_as_long_as_its_stack(site, store, demo):
    delegation = _delegate(site, store, demo)
    assert _delegate(site, store, demo) is None  # an update keeps the trust
    network = site.complete(site.request(CloudKind.NETWORK, NETWORK))
    assert network.observed["project_id"] == demo.get_project_id()
    site.delete(network.id)
    with store.read() as tx:
        stack = stacks.find(tx, site.stack_id)
    store.write(lambda tx: site.provider.trusts.drop_stack(tx, stack))

    def is_gone():
        with store.read() as tx:
            return delegations.find(tx, site.stack_id) is None

    until(is_gone)
    url = f"{demo.auth.auth_url}/OS-TRUST/trusts/{delegation.trust_id}"
    assert demo.get(url, raise_exc=False).status_code == 404


def test_a_stack_whose_trust_is_gone_says_how_to_mend_it(site, store, demo):
    id = site.request(CloudKind.NETWORK, NETWORK)
    failed = site.end(id)
    assert failed.status is Status.FAILED
    assert "update the stack, as a user of its project" in failed.reason
    _delegate(site, store, demo)
    site.request(CloudKind.NETWORK, NETWORK, CloudAction.ENSURE, id)
    site.complete(id)
    site.delete(id)
