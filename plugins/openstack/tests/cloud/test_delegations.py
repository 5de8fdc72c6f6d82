"""Stoker acts for the owners of stacks, by trusts and application credentials of a real Keystone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

from openstack_support import delegated_site as support
from openstack_support import fake_openstack
from openstack_support.delegated_site import DelegatedSite, Member, add_member
from stoker.store.tx import Tx
from stoker_openstack.cloud import orphans
from stoker_openstack.cloud.context import LATE_OBJECTS
from stoker_openstack.cloud.drivers import base
from stoker_openstack.store import delegations
from support import query
from support.keystone import flags as keystone_flags
from support.server import served
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Support for InfluxDB")]
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"net": {"type": "OS::Neutron::Net", "properties": {"name": "delegated"}}},
}
PORT = {"type": "OS::Neutron::Port", "properties": {"network": "nowhere"}}


@pytest.fixture(scope="module")
def cloud():
    with fake_openstack.running() as running:
        yield running


@pytest.fixture(scope="module")
def keystone(tmp_path_factory, start_keystone, cloud):
    with start_keystone(tmp_path_factory.mktemp("keystone")) as running:
        running.add_service("compute", f"{cloud.url}/compute/v2.1")
        running.add_service("network", f"{cloud.url}/network/v2.0")
        yield running


@pytest.fixture
def owner(keystone):
    return add_member(keystone)


@pytest.fixture
def site(store, tmp_path, keystone, request):
    with support.delegated_site(store, tmp_path, keystone, **getattr(request, "param", {})) as running:
        yield running
        for trust_id in running.trusts():
            running.app.provider.delegations.trusts.delete_trust(trust_id)


def _trusts_of(owner: Member) -> list[str]:
    """Return the ids of a user's trusts at Keystone."""
    listed = owner.session.get(f"{owner.keystone.url}/OS-TRUST/trusts?trustor_user_id={owner.id}").json()["trusts"]
    return [trust["id"] for trust in listed]


def _created(site: DelegatedSite, session) -> str:
    """Create a stack; return its path below ``/stacks``."""
    answer = site.create(session, TEMPLATE)
    assert answer.status_code == 201, answer.text
    return answer.headers["Location"].partition("/stacks/")[2]


def _message(answer) -> str:
    return answer.json()["error"]["message"]


def _delete(site: DelegatedSite, session, path: str) -> None:
    assert site.send(session, "DELETE", f"/stacks/{path}").status_code == 204


def test_a_trust_lives_as_long_as_its_stack(site, owner):
    session = owner.session
    refused = site.create(session, {**TEMPLATE, "resources": {"port": PORT}})
    assert "The Network (nowhere) could not be found." in _message(refused)
    assert site.trusts() == []
    path = _created(site, session)
    site.end(session, path, "CREATE_COMPLETE")
    (delegation,), (credential,) = site.delegations(), site.credentials()
    assert (credential.user_id, delegation.is_ended) == (owner.id, False)
    assert site.trusts() == [credential.secret]
    assert site.send(session, "PUT", f"/stacks/{path}", {"template": TEMPLATE}).status_code == 202
    site.end(session, path, "UPDATE_COMPLETE")
    assert site.trusts() == [credential.secret]
    _delete(site, session, path)
    until(lambda: site.delegations() == [])
    assert site.trusts() == []


@on_sqlite
def test_a_trust_outlives_its_stack_until_no_late_object_is_expected(site, owner, cloud, monkeypatch):
    monkeypatch.setattr(base, "_SETTLING", timedelta())
    net = {"type": "OS::Neutron::Net", "properties": {"name": "late"}}
    cloud.held = [("POST", "/network/v2.0/networks")]
    answer = site.create(owner.session, {**TEMPLATE, "resources": {"net": net}})
    path = answer.headers["Location"].partition("/stacks/")[2]
    site.end(owner.session, path, "CREATE_COMPLETE")

    def networks() -> list[str]:
        return [id for id, item in cloud.items["networks"].items() if item["name"] == "late"]

    _delete(site, owner.session, path)
    until(lambda: networks() == [], explain=lambda: f"{networks()} of {cloud.asked}")
    cloud.carry_out()
    assert len(networks()) == 1
    assert len(site.trusts()) == 1

    def hasten(tx: Tx) -> None:
        root_id = path.rpartition("/")[2]
        if site.app.work.is_pending(tx, LATE_OBJECTS, root_id):  # otherwise it runs, or has ended
            site.app.work.defer_by(tx, LATE_OBJECTS, root_id, {}, tx.now)

    def has_ended() -> bool:
        site.store.write(hasten)
        return site.delegations() == []

    until(has_ended, explain=lambda: f"{networks()}, {site.delegations()}")
    assert (networks(), site.trusts()) == ([], [])


@on_sqlite
def test_a_stack_that_is_not_stored_leaves_no_trust(site, owner):
    body = {"stack_name": "twice", "template": TEMPLATE}
    first = site.send(owner.session, "POST", "/stacks", body)
    assert first.status_code == 201, first.text
    assert site.send(owner.session, "POST", "/stacks", body).status_code == 409
    until(lambda: len(site.delegations()) == 1)
    assert site.trusts() == [site.credentials()[0].secret]


@on_sqlite
def test_a_process_that_is_killed_before_it_stores_the_stack_leaves_no_trust(
    site, owner, store, database_url, tmp_path
):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def kill(stack_id: str) -> None:
        words = [str(tmp_path), database_url, site.keystone.url, owner.session.get_token(), owner.project_id, stack_id]
        done = subprocess.run(
            [sys.executable, "-m", "openstack_support.delegated_site", *words],
            env=environment,
            timeout=120,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
        (delegation,), (credential,) = site.delegations(), site.credentials()
        assert (credential.secret, delegation.is_ended, len(site.trusts())) == ("", True, 1)

    def collect(*, dry_run: bool) -> list[str]:
        found = list(orphans.collect_all(store, site.app.provider.delegations, site.site, dry_run=dry_run))
        assert [item.problem for item in found if item.problem] == []
        return [item.what for item in found if "trust" in item.what]

    kill("first")
    assert collect(dry_run=False) == []  # as far as the sweep knows, the process still runs
    site.hasten()
    until(lambda: site.delegations() == [])
    assert site.trusts() == []
    kill("second")
    (trust_id,) = site.trusts()
    (delegation,) = site.delegations()
    store.write(lambda tx: delegations.delete(tx, delegation.id))  # as after the restore of a backup
    store.write(lambda tx: delegations.delete_credential(tx, delegation.credential_id))
    for dry_run in (True, False):
        assert collect(dry_run=dry_run) == [f"trust {trust_id} of no stack at Keystone"]
        assert (trust_id in site.trusts()) is dry_run


def test_a_sweep_revokes_the_delegation_of_a_stack_that_is_gone(site, owner, store):
    kept = _created(site, owner.session)
    site.end(owner.session, kept, "CREATE_COMPLETE")
    orphan = site.app.provider.delegations.delegate(owner.session.get_token(), owner.project_id, "gone")
    store.write(lambda tx: site.app.provider.delegations.confirm(tx, orphan))
    found = list(orphans.collect_all(store, site.app.provider.delegations, site.site, dry_run=False))
    assert [item.what for item in found if "trust" in item.what] == [
        f"trust of user {owner.id} in project {owner.project_id} for a deleted stack"
    ]
    (delegation,) = site.delegations()
    assert (delegation.root_id, site.trusts()) == (kept.partition("/")[2], [site.credentials()[0].secret])


@on_sqlite
@pytest.mark.parametrize("site", [{"trust_roles": "admin, Member"}], indirect=True)
def test_a_user_without_a_required_role_is_refused(site, owner):
    refused = site.create(owner.session, TEMPLATE)
    assert refused.status_code == 403
    assert f"the user {owner.name} lacks the role admin in the project" in _message(refused)
    assert "trust_roles" in _message(refused)
    assert site.send(owner.session, "GET", "/stacks").json()["stacks"] == []


@on_sqlite
def test_another_user_of_the_project_continues_after_the_owner_lost_the_role(site, owner, keystone, cloud):
    colleague, before = add_member(keystone, owner), set(cloud.items["networks"])
    path = _created(site, owner.session)
    site.end(owner.session, path, "CREATE_COMPLETE")
    assert site.send(colleague.session, "PUT", f"/stacks/{path}", {"template": TEMPLATE}).status_code == 202
    site.end(colleague.session, path, "UPDATE_COMPLETE")
    assert site.credentials()[0].user_id == owner.id
    keystone.request("DELETE", owner.role_path())
    site.app.provider.delegations._logins.clear()  # as if its token had expired
    _delete(site, colleague.session, path)
    failed = site.end(colleague.session, path, "DELETE_FAILED")
    reason = failed["stack_status_reason"]
    assert f"the owner {owner.id} is disabled or has lost a role" in reason
    assert "Update or delete the stack, as a user of its project" in reason
    _delete(site, colleague.session, path)
    until(lambda: site.delegations() == [])
    assert set(cloud.items["networks"]) == before
    assert site.trusts() != []  # Keystone permits its deletion to administrators only, and a sweep says so
    (kept,) = [
        item
        for item in orphans.collect_all(site.store, site.app.provider.delegations, site.site, dry_run=False)
        if "trust" in item.what
    ]
    assert "an administrator can, with `openstack trust delete " in kept.problem
    keystone.request("PUT", owner.role_path())


@pytest.mark.parametrize("site", [{"stack_delegation": "APPLICATION_CREDENTIAL"}], indirect=True)
def test_the_stacks_of_a_user_share_an_application_credential(site, owner, store):
    first, second = (_created(site, owner.session) for _ in range(2))
    for path in (first, second):
        site.end(owner.session, path, "CREATE_COMPLETE")
    (credential,) = owner.find_credentials()
    assert credential["name"] == f"stoker:{site.site}:{site.delegations()[0].credential_id}"
    assert (site.trusts(), credential["project_id"]) == ([], owner.project_id)
    with store.read() as tx:
        stored = str(query.scalar(tx, "SELECT secret FROM cloud_credentials"))
    assert site.credentials()[0].secret not in stored
    _delete(site, owner.session, first)
    until(lambda: len(site.delegations()) == 1)
    assert owner.find_credentials() == [credential]
    _delete(site, owner.session, second)
    until(lambda: site.delegations() == [])
    assert owner.find_credentials() == []


@on_sqlite
def test_the_login_decides_how_stoker_acts_for_a_user(site, owner):
    refused = site.create(owner.create_credential(), TEMPLATE)
    assert refused.status_code == 403
    assert "an application credential that is created with --unrestricted" in _message(refused)
    assert site.delegations() == []
    program = owner.create_credential(unrestricted=True)
    path = _created(site, program)
    site.end(program, path, "CREATE_COMPLETE")
    (delegation,) = site.delegations()
    assert (site.credentials()[0].way, site.trusts()) == ("APPLICATION_CREDENTIAL", [])
    # The user's programs with the same roles use the credential, which they could not create.
    restricted = owner.create_credential()
    other = _created(site, restricted)
    site.end(restricted, other, "CREATE_COMPLETE")
    assert {item.credential_id for item in site.delegations()} == {delegation.credential_id}
    for stack in (path, other):
        _delete(site, restricted, stack)
    until(lambda: site.delegations() == [])
    assert [item for item in owner.find_credentials() if item["name"].startswith("stoker:")] == []


@on_sqlite
@pytest.mark.parametrize("site", [{"stack_delegation": "APPLICATION_CREDENTIAL"}], indirect=True)
def test_an_application_credential_that_is_gone_fails_actions_until_an_update(site, owner):
    path = _created(site, owner.session)
    site.end(owner.session, path, "CREATE_COMPLETE")
    (credential,) = owner.find_credentials()
    url = f"{site.keystone.url}/users/{owner.id}/application_credentials/{credential['id']}"
    owner.session.delete(url)
    site.app.provider.delegations._logins.clear()
    changed = {**TEMPLATE, "resources": {"net": {"type": "OS::Neutron::Net", "properties": {"name": "changed"}}}}
    site.send(owner.session, "PUT", f"/stacks/{path}", {"template": changed})
    failed = site.end(owner.session, path, "UPDATE_FAILED")
    assert "the application credential is gone" in failed["stack_status_reason"]
    site.send(owner.session, "PUT", f"/stacks/{path}", {"template": changed})
    site.end(owner.session, path, "UPDATE_COMPLETE")
    assert len(owner.find_credentials()) == 1


def test_stacks_that_a_stack_creates_share_its_trust_and_the_last_one_deletes_it(site, owner, store):
    first = _created(site, owner.session)
    site.end(owner.session, first, "CREATE_COMPLETE")
    (delegation,) = site.delegations()
    token = site.app.provider.delegations.open(delegation.root_id).client.token()
    paths = []
    for name in ("second", "third"):
        body = {"stack_name": name, "template": TEMPLATE}
        answer = site.client.post(f"/v1/{owner.project_id}/stacks", json=body, headers={"X-Auth-Token": token})
        assert answer.status_code == 201, answer.text
        paths.append(answer.headers["Location"].partition("/stacks/")[2])
        site.end(owner.session, paths[-1], "CREATE_COMPLETE")
    assert [item.credential_id for item in site.delegations()] == [delegation.credential_id] * 3
    trusts = site.trusts()
    assert trusts == [site.credentials()[0].secret]
    _delete(site, owner.session, first)
    until(lambda: len(site.delegations()) == 2)
    found = list(orphans.collect_all(store, site.app.provider.delegations, site.site, dry_run=False))
    assert [item.what for item in found if "trust" in item.what] == []
    assert site.trusts() == trusts
    for path in paths:  # the jobs that revoke both delegations run at the same time
        _delete(site, owner.session, path)
    until(lambda: site.delegations() == [])
    assert site.trusts() == []


@on_sqlite
def test_an_unused_share_of_a_trust_leaves_the_trust(site, owner):
    path = _created(site, owner.session)
    site.end(owner.session, path, "CREATE_COMPLETE")
    (delegation,) = site.delegations()
    token = site.app.provider.delegations.open(delegation.root_id).client.token()
    shared = site.app.provider.delegations.delegate(token, owner.project_id, "never stored")
    assert (shared.credential_id, shared.is_ended) == (delegation.credential_id, True)
    site.app.provider.delegations.discard(shared)
    until(lambda: site.delegations() == [delegation])
    assert site.trusts() == [site.credentials()[0].secret]


def test_a_stack_of_a_stack_is_created_and_deleted_in_the_name_of_the_owner(keystone, owner, tmp_path):
    inner = {"type": "OS::Heat::Stack", "properties": {"template": json.dumps(TEMPLATE)}}
    template = {"heat_template_version": "2018-08-31", "resources": {"inner": inner}}
    with served(tmp_path, *keystone_flags(keystone, tmp_path)) as stoker:
        url = f"{stoker.url}/v1/{owner.project_id}/stacks"

        def statuses() -> dict[str, str]:
            listed = owner.session.get(url).json()["stacks"]
            return {stack["stack_name"]: stack["stack_status"] for stack in listed}

        made = owner.session.post(url, json={"stack_name": "outer", "template": template}).json()["stack"]
        stoker.until(lambda: statuses()["outer"] != "CREATE_IN_PROGRESS", 60)
        assert list(statuses().values()) == ["CREATE_COMPLETE"] * 2, statuses()
        assert len(_trusts_of(owner)) == 1
        owner.session.delete(f"{url}/outer/{made['id']}")
        stoker.until(lambda: statuses() == {}, 60)
        stoker.until(lambda: _trusts_of(owner) == [], 60)


@on_sqlite
def test_a_keystone_without_trusts_gets_application_credentials(site, owner, monkeypatch):
    monkeypatch.setattr("stoker_openstack.cloud.keystone._PATH", "/OS-TRUST/none")
    path = _created(site, owner.session)
    site.end(owner.session, path, "CREATE_COMPLETE")
    assert len(owner.find_credentials()) == 1
