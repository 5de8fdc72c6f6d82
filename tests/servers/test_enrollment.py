"""A token is traded once, for the key of its own server."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stoker.model.errors import Conflict, EntityNotFound, Invalid, Unauthorized
from stoker.model.server import Kind, Machine, Server
from stoker.servers import enrollment
from stoker.servers.keys import Keys
from stoker.servers.redemption import redeem_token
from stoker.store import server_lists, servers
from stoker.store.open import Store
from support import query
from support.concurrency import call_together
from support.search import examples


def enrolled(store: Store, name: str = "web", project: str = "p") -> tuple[Server, str]:
    server, _, token = store.write(lambda tx: enrollment.enroll(tx, project, name))
    return server, token


def trade(store: Store, keys: Keys, token: str, instance: str = "i", **more: str) -> tuple[Server, str]:
    machine = Machine(instance=instance, hostname="host", **more)
    redemption = store.write(lambda tx: redeem_token(tx, keys, token, machine))
    return redemption.server, redemption.key


def test_a_token_is_exchanged_for_a_key_and_a_second_time_only_for_who_has_proof(store, keys):
    server, token = enrolled(store)
    traded, first = trade(store, keys, token, "first", machine="m")
    assert traded.id == server.id
    assert trade(store, keys, token, "first", machine="m")[1] == first, "the same agent gets the same key again"
    with pytest.raises(Unauthorized):
        trade(store, keys, token, "second", machine="m")
    again, key = trade(store, keys, token, "second", machine="m", key=first)
    assert again.id == keys.authenticate(key) == server.id
    with store.read() as tx:
        assert servers.get(tx, server.id, "p").hostname == "host"
        kept = query.rows(tx, "SELECT * FROM enrollments")
    assert len(kept) == 1
    assert token not in str(kept), "only its hash"


@pytest.mark.parametrize("token", ["", "x", "\0", "\udcff", "a" * 10_000])
def test_a_wrong_token_is_refused(store, keys, token):
    enrolled(store)
    with pytest.raises(Unauthorized):
        trade(store, keys, token)


def test_a_name_belongs_to_one_enrolled_server(store, keys):
    _, token = enrolled(store)
    trade(store, keys, token)
    with pytest.raises(Conflict):
        enrolled(store)
    enrolled(store, project="another")
    enrolled(store, "other")


def test_enrolling_again_before_the_first_agent_replaces_the_token(store, keys):
    first, old = enrolled(store)
    second, new = enrolled(store)
    assert first.id == second.id
    with pytest.raises(Unauthorized):
        trade(store, keys, old)
    assert trade(store, keys, new)[0].id == first.id


def test_concurrent_enrollments_of_one_name_give_one_server(store):
    assert len(set(call_together(6, lambda _: enrolled(store)[0].id))) == 1


def test_a_removed_name_may_be_enrolled_again(store, keys):
    server, token = enrolled(store)
    _, key = trade(store, keys, token)
    keys.authenticate(key)
    store.write(lambda tx: enrollment.remove(tx, server))
    assert keys.get_cached(key) is None
    with pytest.raises(Unauthorized):
        keys.authenticate(key)
    with pytest.raises(Unauthorized):
        trade(store, keys, token)
    fresh, _ = enrolled(store)
    assert fresh.id != server.id


def test_a_server_of_a_stack_is_removed_only_by_the_stack(store):
    server, _ = enrolled(store)
    with pytest.raises(Conflict):
        store.write(lambda tx: enrollment.remove(tx, replace(server, stack_id="s")))


def test_servers_are_found_by_id_and_by_name_in_their_project(store):
    server, _ = enrolled(store)
    with store.read() as tx:
        assert enrollment.find(tx, "p", server.id).id == server.id
        assert enrollment.find(tx, "p", "web").id == server.id
        for project, name in (("q", server.id), ("q", "web"), ("p", "nobody")):
            with pytest.raises(EntityNotFound):
                enrollment.find(tx, project, name)


def test_a_deployed_server_is_found_by_its_name(store, keys):
    def add(tx):
        servers.add(tx, Server(id="d", project_id="p", name="web", kind=Kind.DEPLOYED, created_at=tx.now))

    store.write(add)
    server, token = enrolled(store)
    assert server.id == "d"
    assert keys.authenticate(trade(store, keys, token)[1]) == "d"


@pytest.mark.parametrize(
    "name", ["", " ", "a/b", "web*", "a?", "[a]", "a\nb", "a\0b", "\x1b[31m", "x" * 256, " a", "a ", "\u202e", "\ud800"]
)
def test_invalid_names_are_refused_and_not_stored(store, name):
    with pytest.raises(Invalid):
        enrolled(store, name)
    with store.read() as tx:
        assert server_lists.page(tx, "p", 9) == []


@settings(max_examples=examples(15))
@given(
    name=st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="/*?["), min_size=1, max_size=255)
)
def test_every_printable_name_is_accepted(store, name):
    store.write(lambda tx: [servers.delete(tx, each.id) for _, each in server_lists.page(tx, "p", 9)] and None)
    server, _ = enrolled(store, name)
    with store.read() as tx:
        assert servers.get(tx, server.id, "p").name == name


def test_no_token_begins_as_an_option(store):
    """One in sixty-four of another alphabet would begin with a dash, and no `--token` could carry it."""
    tokens = [enrolled(store, name=f"web{i}")[1] for i in range(200)]
    assert [token for token in tokens if not token.isalnum()] == []
