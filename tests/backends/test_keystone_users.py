"""Users that stacks need at Keystone: created by jobs, and refused in the end."""

from __future__ import annotations

import pytest

from stoker.backends.keystone_users import USER, KeystoneUserController, KeystoneUsers
from stoker.backends.reconciler import RECONCILE, Reconciler
from stoker.failures import ServiceRejected
from stoker.identity.stack_users import StackUsers
from stoker.store.tx import Tx
from support.stacks import world
from support.templates import config, template
from support.work import ManualWork


class Accounts:
    """A Keystone in memory."""

    domain_id = "domain"

    def __init__(self):
        self.refuses = 0
        self.users, self.projects = {}, {}

    def log_in(self):
        pass

    def project(self, name, description):
        self.projects[name] = name
        return name

    def user(self, name, project_id, password):
        if self.refuses:
            self.refuses -= 1
            raise ServiceRejected("no rights", 403)
        self.users[name] = True
        return name

    def enable(self, user_id, *, enabled):
        self.users[user_id] = enabled
        return True

    def delete_user(self, id, name):
        self.users.pop(name, None)

    def delete_project(self, id, name):
        self.projects.pop(name, None)


@pytest.fixture
def work():
    return ManualWork()


@pytest.fixture
def keystone():
    return Accounts()


@pytest.fixture
def settled(store, work, keystone, resources, monkeypatch):
    """The outcomes with which the resources are woken."""
    outcomes = []
    monkeypatch.setattr(Tx, "wake", lambda _tx, owner, cause=None: outcomes.append((owner.id, cause and cause.failure)))
    Reconciler(store, work, {USER: KeystoneUserController(store, work, keystone, StackUsers(b"secret"))})
    return outcomes


@pytest.fixture
def resources(store):
    """The ids of a stack's resources, with the stack."""
    heat = world(store)
    stack = heat.create(template({"a": config(), "b": config()}))
    return stack, [heat.resources(stack)[name].id for name in ("a", "b")]


def test_users_come_and_go_with_their_resources(store, work, keystone, settled, resources):
    stack, ids = resources
    users = KeystoneUsers(work)
    store.write(lambda tx: [users.ensure(tx, id, stack.id, f"user-{id}") for id in ids])
    work.run(RECONCILE)
    assert keystone.users == {f"user-{id}": True for id in ids}
    assert sorted(settled) == sorted((id, None) for id in ids)
    with store.read() as tx:
        assert users.find(tx, ids[0])["user_id"] == f"user-{ids[0]}"
    store.write(lambda tx: users.disable(tx, ids[0]))
    store.write(lambda tx: users.drop(tx, ids[1]))
    work.run(RECONCILE)
    assert keystone.users == {f"user-{ids[0]}": False}


@pytest.mark.parametrize(("refusals", "reason"), [(2, None), (3, "no rights")])
def test_a_user_is_refused_after_the_third_rejection(store, work, keystone, settled, resources, refusals, reason):
    stack, (id, _) = resources
    keystone.refuses = refusals
    store.write(lambda tx: KeystoneUsers(work).ensure(tx, id, stack.id, "u"))
    for _ in range(3):
        assert settled == []
        work.step(RECONCILE)
    assert settled == [(id, reason)]
    assert work.jobs == []
