"""Equal outputs of many servers: which are equal, and in which order their groups are shown."""

from __future__ import annotations

import pytest

from stoker.store import servers
from stoker.triggers.results import group_outputs, normalize


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("web1 is up", "web2 is up"),
        ("http://web1.example.com:80/", "http://web2.example.com:80/"),
        ("addr 10.0.0.1/24", "addr 10.0.0.2/24"),
        ("2026-11-28T09:18:05Z done", "2026-11-28T10:19:59.123+02:00 done"),
        ("2026-11-28 09:18:05,123 INFO", "2026-01-01 00:00:00,001 INFO"),
        ("Sat Nov 28 09:18:05 UTC 2026", "Sun Nov  1 10:00:00 UTC 2026"),
        ("Sat, 28 Nov 2026 09:18:05 +0000", "Sun, 1 Nov 2026 10:00:00 +0000"),
        ("Nov 28 09:18:05 kernel: ok", "Nov 28 09:18:06 kernel: ok"),
        ("[09:18:05] ok", "[10:18:05] ok"),
        ("real\t0m0.003s", "real\t1m10.250s"),
        ("took 0.5 s", "took 12.25 s"),
    ],
)
def test_own_names_and_times_do_not_matter(first, second):
    assert normalize(first, ["web1", "10.0.0.1"]) == normalize(second, ["web2", "10.0.0.2"]) != first


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("nameserver 10.0.0.8", "nameserver 10.0.0.9"),
        ("nameserver 10.0.0.1", "nameserver 10.0.0.12"),
        ("web10", "web11"),
        ("version 1.2.3", "version 1.2.4"),
        ("timeout 30s", "timeout 60s"),
        ("expires 2026-12-01", "expires 2027-12-01"),
        ("00:16:3e:00:00:01", "00:16:3e:00:00:02"),
    ],
)
def test_other_differences_matter(first, second):
    assert normalize(first, ["web1", "10.0.0.1"]) != normalize(second, ["web1", "10.0.0.1"])


def on(fleet, *names):
    """A trigger on servers with these names, and its deployments."""
    trigger = fleet.trigger_on(*fleet.enroll(*names))
    return trigger, fleet.running(trigger)


def groups(fleet, trigger, status=None, limit=100):
    return fleet.world.read(group_outputs, trigger.id, status=status, limit=limit)


def test_groups_are_ordered_by_size_and_exit_code(fleet):
    trigger, running = on(fleet, "web1", "web2", "web3", "web4", "web5")
    results = [(3, "down\n"), (0, "web2 up\n"), (0, "web3 up\n"), (10, "up\n"), (3, "web5 up\n")]
    for deployment, (code, text) in zip(running, results, strict=True):
        fleet.end(deployment, code, deploy_stdout=text)
    result, total = groups(fleet, trigger)
    assert [(group.exit_code, group.stdout, group.servers) for group in result] == [
        ("0", "<server> up\n", ["web2", "web3"]),
        ("3", "down\n", ["web1"]),
        ("3", "<server> up\n", ["web5"]),
        ("10", "up\n", ["web4"]),
    ]
    assert total == 4
    first, total = groups(fleet, trigger, status="FAILED", limit=1)
    assert ([group.servers for group in first], total) == ([["web1"]], 3)


def test_the_addresses_that_an_agent_reports_are_its_servers_own(fleet):
    trigger, running = on(fleet, "one", "two")
    for number, deployment in enumerate(running):
        facts = {"hostname": f"host-{number}", "networks": {"eth0": [f"10.0.0.{number}", f"fd00::{number}"]}}
        server = fleet.world.read(servers.get, deployment.server_id, fleet.world.project)
        fleet.world.store.write(lambda tx, server=server, facts=facts: servers.put_facts(tx, server, None, facts))
    for number, deployment in enumerate(running):
        text = f"host-{number} 10.0.0.{number} [fd00::{number}] {deployment.server_id} {deployment.id}"
        fleet.end(deployment, deploy_stdout=text, deploy_stderr="same")
    ((group,), _) = groups(fleet, trigger)
    assert (group.stdout, group.stderr) == ("<server> <server> [<server>] <server> <server>", "same")


def test_streams_are_compared_apart_and_long_ones_are_cut(fleet):
    trigger, (one, two) = on(fleet, "one", "two")
    fleet.end(one, deploy_stdout="text")
    fleet.end(two, deploy_stderr="text")
    assert groups(fleet, trigger)[1] == 2

    trigger, (one, two) = on(fleet, "one", "two")
    fleet.end(one, deploy_stdout="x" * 20_000 + "1")
    fleet.end(two, deploy_stdout="x" * 20_000 + "2")
    result, _ = groups(fleet, trigger)
    assert [(len(group.stdout), group.is_cut) for group in result] == [(16384, True)] * 2


def test_runs_without_a_result_are_grouped_by_their_reason(fleet):
    trigger, running = on(fleet, "one", "two", "three")
    fleet.end(running[0], deploy_stdout="")
    fleet.cancel(trigger, force=True)
    ended, without = groups(fleet, trigger)[0][::-1]
    assert (ended.exit_code, ended.stdout, ended.servers) == ("0", "", ["one"])
    assert (without.exit_code, without.digest, without.servers) == (None, None, ["two", "three"])
    assert without.status_reason == "Cancelled by bob"


def test_a_run_that_begins_again_has_no_result(fleet):
    trigger, (deployment,) = on(fleet, "one")
    fleet.end(deployment, 3, deploy_stdout="before")
    before = fleet.targets(trigger)[0]
    assert (before.exit_code, before.digest is None) == ("3", False)
    fleet.retry(deployment)
    after = fleet.targets(trigger)[0]
    assert (after.exit_code, after.digest) == (None, None)
    assert groups(fleet, trigger) == ([], 0)


def test_no_secret_is_in_a_digest_or_a_group(fleet):
    digests = []
    config = fleet.config(inputs=[{"name": "password", "secret": True}])
    values = {"one": "correct-horse", "two": "battery-staple"}
    for server in fleet.enroll(*values):
        value = values[server.name]
        trigger = fleet.trigger(config_id=config, servers=[server.id], input_values={"password": value})
        fleet.end(fleet.running(trigger)[0], deploy_stdout=f"login {value}")
        ((group,), _) = groups(fleet, trigger)
        assert group.stdout == "login ******"
        digests.append(group.digest)
    assert digests[0] == digests[1]
