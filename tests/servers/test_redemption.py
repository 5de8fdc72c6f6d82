"""One token for many machines: limits, names, identities and enrollment."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from stoker.model.errors import ApprovalPending, Conflict, EntityNotFound, Unauthorized
from stoker.model.selectors import parse
from stoker.model.server import AgentAccess, Kind, Machine, NameSource, Server
from stoker.servers import enrollment
from stoker.servers.redemption import TokenRefused, redeem_token
from stoker.store import server_lists, servers
from support.concurrency import call_together


def issue(store, *, limit=10, labels=None, **terms):
    return store.write(lambda tx: enrollment.enroll_many(tx, "p", limit=limit, labels=labels or {}, **terms))


def redeem(store, keys, token, instance, *, hostname="web", **more):
    who = Machine(instance=instance, hostname=hostname, **more)
    return store.write(lambda tx: redeem_token(tx, keys, token, who))


def names(store):
    with store.read() as tx:
        return sorted(server.name for _, server in server_lists.page(tx, "p", 100))


def test_each_machine_becomes_a_server_with_its_labels(store, keys):
    _, token = issue(store, labels={"role": "web"})
    first, second = (redeem(store, keys, token, instance, hostname=instance) for instance in ("a", "b"))
    assert names(store) == ["a", "b"]
    assert {keys.authenticate(each.key) for each in (first, second)} == {first.server.id, second.server.id}
    with store.read() as tx:
        assert servers.get(tx, first.server.id, "p").labels == {"role": "web"}


def test_equal_names_get_the_first_free_number(store, keys):
    """More than one query has candidates for."""
    _, token = issue(store, limit=40)
    machines = [redeem(store, keys, token, f"machine {number}", hostname="web") for number in range(30)]
    assert names(store) == sorted(["web", *(f"web-{number}" for number in range(2, 31))])
    store.write(lambda tx: enrollment.forget(tx, machines[20].server.id))
    assert redeem(store, keys, token, "another machine", hostname="web").server.name == "web-21"


def test_a_machine_does_not_become_a_server_that_a_stack_awaits(store, keys):
    """A machine chooses its host name, so the name gives it nothing that belongs to another."""
    store.write(
        lambda tx: servers.add(tx, Server(id="d", project_id="p", name="db", kind=Kind.DEPLOYED, created_at=tx.now))
    )
    _, token = issue(store)
    assert redeem(store, keys, token, "a", hostname="db").server.id != "d"
    assert names(store) == ["db", "db-2"]


@pytest.mark.parametrize(
    ("cloud_id", "hostname", "name"),
    [("i-1", "web", "i-1"), ("", "web", "web"), ("", "", "server"), ("", "a/b", "server")],
)
def test_names_come_from_the_cloud_or_the_host(store, keys, cloud_id, hostname, name):
    _, token = issue(store, name_from=NameSource.CLOUD_ID)
    assert redeem(store, keys, token, "a", hostname=hostname, cloud_id=cloud_id).server.name == name


def test_the_limit_holds_for_machines_at_the_same_time(store, keys):
    _, token = issue(store, limit=3)

    def enroll(number):
        try:
            return redeem(store, keys, token, f"i{number}", hostname="web").server.name
        except TokenRefused:
            return None

    outcomes = call_together(8, enroll)
    assert sorted(name for name in outcomes if name) == ["web", "web-2", "web-3"]
    assert outcomes.count(None) == 5
    with store.read() as tx:
        [issued] = servers.list_enrollments(tx, "p")
    assert issued.uses == 3


@pytest.mark.parametrize("needs_approval", [False, True])
def test_a_reinstalled_machine_stays_the_same_server(store, keys, needs_approval):
    _, token = issue(store, limit=1, needs_approval=needs_approval)
    first = redeem(store, keys, token, "before", machine="m")
    if needs_approval:
        store.write(lambda tx: enrollment.approve(tx, first.server, first.server.id))
    again = redeem(store, keys, token, "after", machine="m", key=first.key)
    assert again.server.id == first.server.id
    assert again.replaces
    with pytest.raises(Unauthorized):
        keys.authenticate(first.key)
    assert keys.authenticate(again.key) == first.server.id


@pytest.mark.parametrize("key", ["", "wrong", "an earlier one", "of another server"])
def test_a_machine_without_the_present_key_is_another_server(store, keys, key):
    """Whoever knows the token and the id of a machine must not get its server."""
    _, token = issue(store, needs_approval=True)
    first = redeem(store, keys, token, "a", machine="m")
    store.write(lambda tx: enrollment.approve(tx, first.server, "web"))
    present = redeem(store, keys, token, "b", machine="m", key=first.key)
    wrong = {"an earlier one": first.key, "of another server": redeem(store, keys, token, "c", machine="o").key}
    taken = redeem(store, keys, token, "d", machine="m", key=wrong.get(key, key))
    assert taken.server.id != first.server.id
    assert taken.server.agent_access is AgentAccess.PENDING_APPROVAL
    assert keys.authenticate(present.key) == first.server.id


@pytest.mark.parametrize(
    ("names", "hostname", "is_bound"),
    [(None, "web1", False), ("web*", "web1", True), ("web?", "vault1", False), ("*", "vault1", True)],
)
def test_stacks_use_only_names_that_the_token_or_a_user_permits(store, keys, names, hostname, is_bound):
    _, token = issue(store, names=names)
    server = redeem(store, keys, token, "a", hostname=hostname).server

    def find(tx):
        return servers.find_enrolled(tx, hostname, "p")

    with store.read() as tx:
        assert (find(tx) is not None) == is_bound
        if not is_bound:
            with pytest.raises(Conflict, match="stoker server approve"):
                servers.resolve_id(tx, "p", hostname)
    if not is_bound:
        with pytest.raises(Conflict):
            store.write(lambda tx: enrollment.approve(tx, server, server.id))
        store.write(lambda tx: enrollment.approve(tx, server, hostname))
    with store.read() as tx:
        assert find(tx).id == servers.resolve_id(tx, "p", hostname) == server.id


@pytest.mark.parametrize("machines", [("m1", "m2"), ("", "")], ids=["clones", "without an identity"])
def test_different_machines_are_different_servers(store, keys, machines):
    """Clones of an installation make another instance each, because the machine differs."""
    _, token = issue(store)
    first, second = (redeem(store, keys, token, "ab"[n], machine=machines[n]).server.id for n in (0, 1))
    assert first != second


def test_a_revoked_token_admits_no_machine_and_its_servers_stay(store, keys):
    issued, token = issue(store)
    first = redeem(store, keys, token, "a")
    store.write(lambda tx: servers.delete_enrollment(tx, issued.id))
    with pytest.raises(Unauthorized):
        redeem(store, keys, token, "b")
    assert keys.authenticate(first.key) == first.server.id


@pytest.mark.parametrize("machines", ["one", "many"])
def test_an_expired_token_says_so_in_the_audit_log_only(store, keys, machines):
    past = timedelta(seconds=-1)
    if machines == "many":
        _, token = issue(store, lifetime=past)
    else:
        _, _, token = store.write(lambda tx: enrollment.enroll(tx, "p", "web", lifetime=past))
    with pytest.raises(TokenRefused) as refusal:
        redeem(store, keys, token, "a")
    assert refusal.value.reason == "The enrollment has expired"
    assert "expired" not in str(refusal.value)


def test_a_server_that_waits_for_approval_may_do_nothing_else(store, keys):
    _, token = issue(store, labels={"role": "web"}, needs_approval=True)
    waiting = redeem(store, keys, token, "a")
    assert waiting.server.agent_access is AgentAccess.PENDING_APPROVAL
    with pytest.raises(ApprovalPending):
        keys.authenticate(waiting.key)
    assert keys.authenticate(waiting.key, before_approval=True) == waiting.server.id
    with store.read() as tx:
        assert server_lists.find_by_selector(tx, "p", parse("role=web")) == []
    store.write(lambda tx: enrollment.approve(tx, waiting.server, waiting.server.id))
    assert keys.authenticate(waiting.key) == waiting.server.id
    with store.read() as tx:
        [selected] = server_lists.find_by_selector(tx, "p", parse("role=web"))
        assert selected.id == waiting.server.id
    with pytest.raises(Conflict):
        allowed = replace(waiting.server, agent_access=AgentAccess.ALLOWED)
        store.write(lambda tx: enrollment.approve(tx, allowed, allowed.id))


def test_again_gives_the_server_to_another_machine_when_it_comes(store, keys):
    server, _, token = store.write(lambda tx: enrollment.enroll(tx, "p", "web1"))
    old = redeem(store, keys, token, "a").key
    store.write(lambda tx: servers.change(tx, server.id, labels={"role": "web"}))
    with pytest.raises(Conflict, match="--again"):
        store.write(lambda tx: enrollment.enroll(tx, "p", "web1"))
    again, _, token = store.write(lambda tx: enrollment.enroll(tx, "p", "web1", again=True))
    assert again.id == server.id
    assert keys.authenticate(old) == server.id
    taken = redeem(store, keys, token, "b")
    assert taken.replaces
    assert keys.authenticate(taken.key) == server.id
    assert keys.get_cached(old) is None
    with pytest.raises(Unauthorized):
        keys.authenticate(old)
    with store.read() as tx:
        assert servers.get(tx, server.id, "p").labels == {"role": "web"}
    with pytest.raises(EntityNotFound):
        store.write(lambda tx: enrollment.enroll(tx, "p", "nobody", again=True))
