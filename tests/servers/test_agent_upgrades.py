"""Requests, offers and outcomes of upgrades of agents."""

from __future__ import annotations

import json

import pytest

from stoker.deployments.documents import Documents
from stoker.model.agent_upgrade import UpgradeStatus
from stoker.model.errors import Conflict
from stoker.model.server import Machine
from stoker.servers import enrollment
from stoker.servers.agent_bundle import AgentBundle
from stoker.servers.agent_upgrades import AUTOMATIC, AgentUpgrades
from stoker.servers.redemption import redeem_token
from stoker.store import agent_upgrades, servers

BUNDLE = AgentBundle("http://stoker.example")


@pytest.fixture
def upgrades():
    return AgentUpgrades(BUNDLE)


@pytest.fixture
def chosen(store, keys):
    """Four servers with agents."""

    def enroll(tx, name):
        token = enrollment.enroll(tx, "p", name)[2]
        redeemed = redeem_token(tx, keys, token, Machine(instance=name, hostname=name))
        return redeemed.server, redeemed.key

    enrolled = [store.write(lambda tx, name=name: enroll(tx, name)) for name in ("a", "b", "c", "d")]
    with store.read() as tx:
        return [(servers.get(tx, server.id, "p"), key) for server, key in enrolled]


def request(store, upgrades, chosen, **how):
    options = {"canary": 0, "pause_on_failure": False, "requested_by": "me", **how}
    return store.write(lambda tx: upgrades.request(tx, [server for server, _ in chosen], **options))


def record(store, upgrades, server, made, status, reason=None):
    store.write(lambda tx: upgrades.record(tx, server[0].id, made[0].rollout_id, UpgradeStatus(status), reason))


def states(store, chosen):
    with store.read() as tx:
        by_id = {upgrade.server_id: upgrade.status.value for upgrade in agent_upgrades.page(tx, "p", 100)}
    return [by_id.get(server.id) for server, _ in chosen]


def test_the_document_offers_the_program_by_its_digest(store, upgrades, chosen):
    documents = Documents(store, offer_program=upgrades.offer)
    (server, _), (other, _) = chosen[:2]
    assert "agent" not in json.loads(documents.load_agents([(server.id, True)])[0].body)
    [made] = request(store, upgrades, chosen[:1])
    document = documents.agent(server.id) or documents.load_agents([(server.id, True)])[0]
    offer = json.loads(document.body)["agent"]
    assert (offer["id"], offer["version"], offer["sha256"]) == (made.rollout_id, BUNDLE.version, BUNDLE.sha256)
    assert "agent" not in json.loads(documents.load_agents([(other.id, True)])[0].body)
    record(store, upgrades, chosen[0], [made], "COMPLETE")
    assert documents.agent(server.id) is None  # the cached document is dropped
    assert "agent" not in json.loads(documents.load_agents([(server.id, True)])[0].body)


def test_the_others_follow_when_all_canaries_have_ended(store, upgrades, chosen):
    made = request(store, upgrades, chosen, canary=2)
    assert states(store, chosen) == ["REQUESTED", "REQUESTED", "WAITING", "WAITING"]
    record(store, upgrades, chosen[0], made, "COMPLETE")
    record(store, upgrades, chosen[1], made, "IN_PROGRESS")
    assert states(store, chosen) == ["COMPLETE", "IN_PROGRESS", "WAITING", "WAITING"]
    record(store, upgrades, chosen[1], made, "FAILED", "no space")
    assert states(store, chosen) == ["COMPLETE", "FAILED", "REQUESTED", "REQUESTED"]


@pytest.mark.parametrize("status", ["FAILED", "ROLLED_BACK"])
def test_a_failure_pauses_the_others(store, upgrades, chosen, status):
    made = request(store, upgrades, chosen, canary=1, pause_on_failure=True)
    record(store, upgrades, chosen[0], made, status, "no contact")
    assert states(store, chosen) == [status, "PAUSED", "PAUSED", "PAUSED"]
    request(store, upgrades, chosen[1:])
    assert states(store, chosen) == [status, "REQUESTED", "REQUESTED", "REQUESTED"]


@pytest.mark.parametrize(("sha256", "state"), [(BUNDLE.sha256, "COMPLETE"), (None, "COMPLETE"), ("0" * 64, "FAILED")])
def test_an_upgrade_is_complete_only_if_the_new_program_reports(store, upgrades, chosen, sha256, state):
    [upgrade] = request(store, upgrades, chosen[:1])
    server, complete = chosen[0][0], UpgradeStatus.COMPLETE
    store.write(lambda tx: upgrades.record(tx, server.id, upgrade.rollout_id, complete, None, sha256=sha256))
    assert states(store, chosen[:1]) == [state]


def test_a_report_about_a_replaced_or_ended_upgrade_changes_nothing(store, upgrades, chosen):
    first = request(store, upgrades, chosen[:1])
    second = request(store, upgrades, chosen[:1])
    record(store, upgrades, chosen[0], first, "FAILED")
    assert states(store, chosen[:1]) == ["REQUESTED"]
    record(store, upgrades, chosen[0], second, "COMPLETE")
    record(store, upgrades, chosen[0], second, "FAILED")
    assert states(store, chosen[:1]) == ["COMPLETE"]


@pytest.mark.parametrize("removal", ["cancelled", "replaced", "deleted"])
def test_a_rollout_without_its_last_canary_is_paused(store, upgrades, chosen, removal):
    made = request(store, upgrades, chosen, canary=2)
    record(store, upgrades, chosen[0], made, "COMPLETE")
    canary = chosen[1][0]
    if removal == "cancelled":
        store.write(lambda tx: upgrades.cancel(tx, canary))
    elif removal == "replaced":
        request(store, upgrades, chosen[1:2])
    else:
        store.write(lambda tx: enrollment.remove(tx, canary))
    now = "REQUESTED" if removal == "replaced" else None
    assert states(store, chosen) == ["COMPLETE", now, "PAUSED", "PAUSED"]


def test_an_upgrade_is_cancelled_before_it_begins_only(store, upgrades, chosen):
    made = request(store, upgrades, chosen[:2])
    store.write(lambda tx: upgrades.cancel(tx, chosen[0][0]))
    assert states(store, chosen[:2]) == [None, "REQUESTED"]
    record(store, upgrades, chosen[1], made, "IN_PROGRESS")
    for server, _ in chosen[:2]:
        with pytest.raises(Conflict, match="no upgrade that can be cancelled"):
            store.write(lambda tx, server=server: upgrades.cancel(tx, server))


def test_a_server_without_an_agent_is_refused(store, upgrades, chosen):
    waiting = store.write(lambda tx: enrollment.enroll(tx, "p", "waiting"))[0]
    with pytest.raises(Conflict, match="has no agent that could be upgraded"):
        request(store, upgrades, [*chosen, (waiting, "")])
    assert states(store, chosen) == [None] * 4


def test_automatic_upgrades_are_requested_once_for_each_program(store, upgrades, chosen):
    server = chosen[0]
    automatic = AgentUpgrades(BUNDLE, is_automatic=True)
    for each, version in ((upgrades, "0.0.1"), (automatic, BUNDLE.version), (automatic, None)):
        store.write(lambda tx, each=each, version=version: each.observe_version(tx, server[0].id, version))
        assert states(store, [server]) == [None]
    store.write(lambda tx: automatic.observe_version(tx, server[0].id, "0.0.1"))
    with store.read() as tx:
        made = agent_upgrades.find(tx, server[0].id)
    assert (made.status, made.requested_by) == (UpgradeStatus.REQUESTED, AUTOMATIC)
    record(store, automatic, server, [made], "ROLLED_BACK")
    store.write(lambda tx: automatic.observe_version(tx, server[0].id, "0.0.1"))
    assert states(store, [server]) == ["ROLLED_BACK"]


def test_a_deleted_server_has_no_upgrade(store, upgrades, chosen):
    request(store, upgrades, chosen[:1])
    store.write(lambda tx: enrollment.remove(tx, chosen[0][0]))
    assert states(store, chosen[:1]) == [None]
