"""Objects at a real OpenStack in their user's own project, by a trust and by an application credential."""

from __future__ import annotations

import pytest
import yaml
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from openstack_support.cloud_sites import cloud_site, real_cloud
from stoker.store import stacks
from stoker_openstack.model import CloudKind
from stoker_openstack.store import delegations
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Support for InfluxDB")]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way", ["TRUST", "APPLICATION_CREDENTIAL"])
def test_an_object_is_created_in_the_project_of_its_user(tmp_path, store, way):
    auth = yaml.safe_load(real_cloud().read_text())["clouds"]["peer-demo"]["auth"]
    demo = Session(auth=v3.Password(**auth))
    login = {
        "keystone_auth_url": demo.auth.auth_url.removesuffix("/v3"),
        "keystone_cloud": "peer",
        "stack_delegation": way,
    }
    with cloud_site(store, tmp_path, "", real_cloud(), identity_mode="keystone", **login) as site:
        site.project_id = demo.get_project_id()
        credentials = site.context.credentials
        new = credentials.delegate(demo.get_token(), site.project_id, site.stack_id)
        store.write(lambda tx: credentials.confirm(tx, new))
        network = site.complete(site.request(CloudKind.NETWORK, {"name": "t-delegated"}))
        assert network.observed["project_id"] == site.project_id
        site.delete(network.id)
        with store.read() as tx:
            stack = stacks.find(tx, site.stack_id)
        store.write(lambda tx: credentials.drop_stack(tx, stack))

        def is_gone():
            with store.read() as tx:
                return delegations.find(tx, new.id) is None

        until(is_gone)
