"""Limits of runs on a machine with systemd: scopes of real control groups."""

from __future__ import annotations

import pytest

from support.agent_protocol import deploy, shown

pytestmark = pytest.mark.slow

#: Uses more and more memory.
HOG = "#!/usr/bin/env python3\nparts = [bytearray(1024 * 1024) for _ in range(400)]\n"
LIMITS = """#!/bin/bash
for controller in memory pids cpu; do
  path=$(sed -n "s/.*:$controller://p" /proc/self/cgroup)
  cat /sys/fs/cgroup/$controller$path/{memory.limit_in_bytes,pids.max,cpu.cfs_quota_us} 2>/dev/null
done
id -un; nice
"""
DAEMON = "#!/bin/sh\nsetsid sleep 1000 & echo $! >/tmp/pids; echo $$ >>/tmp/pids; sleep 1000\n"


@pytest.fixture(scope="module")
def web(machines, stoker):
    with machines.make("limits", booted=True) as machine:
        machine.enroll(stoker)
        yield machine


def start(stoker, script, **options):
    return deploy(stoker, stoker.heat("GET", "/servers/limits").body["server"]["id"], script, options=options)


def result(stoker, deployment):
    stoker.until(lambda: shown(stoker, deployment)["status"] != "IN_PROGRESS")
    return shown(stoker, deployment)


def scopes(web):
    return web.run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "stoker-run-*"]).stdout


def test_the_limits_of_a_run_are_those_of_its_scope(stoker, web):
    deployment = start(stoker, LIMITS, user="nobody", memory_max="64M", tasks_max=50, cpu_max="50%", nice=3)
    ended = result(stoker, deployment)
    assert ended["status"] == "COMPLETE", ended
    assert ended["output_values"]["deploy_stdout"].split() == [str(64 * 1024**2), "51", "50000", "nobody", "3"]
    assert scopes(web) == ""


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_the_reason_of_a_run_beyond_its_memory_names_the_limit(stoker, web, user):
    ended = result(stoker, start(stoker, HOG, user=user, memory_max="64M"))
    assert (ended["status"], ended["output_values"]["deploy_status_code"]) == ("FAILED", 137)
    assert "exceeded memory_max 64M" in ended["status_reason"]


def test_a_scope_ends_with_the_cancellation_of_its_run(stoker, web):
    deployment = start(stoker, "#!/bin/sh\ntouch /tmp/begun; sleep 1000\n", memory_max="64M", user="nobody")
    web.until("test", "-e", "/tmp/begun")
    assert scopes(web).startswith("stoker-run-")
    stoker.run("deployment", "cancel", deployment["id"])
    assert result(stoker, deployment)["output_values"]["deploy_status_code"] == 143
    web.until("sh", "-c", "! systemctl list-units --all --plain --no-legend 'stoker-run-*' | grep .")


def test_an_agent_that_was_killed_ends_the_scopes_of_its_runs_at_its_next_start(stoker, web):
    deployment = start(stoker, DAEMON, memory_max="64M", user="nobody")
    web.until("sh", "-c", "test $(wc -l </tmp/pids) = 2")
    web.run(["systemctl", "kill", "--kill-whom=main", "--signal=KILL", "stoker-agent"])
    assert result(stoker, deployment)["output_values"]["deploy_status_code"] == 137
    web.until("sh", "-c", "! kill -0 $(cat /tmp/pids)")
    web.until("sh", "-c", "! systemctl list-units --all --plain --no-legend 'stoker-run-*' | grep .")


def test_without_a_system_bus_the_agent_refuses_limits(stoker, web):
    """`systemd-run` needs the bus; the agent asks it only until it works once."""
    web.run(["mv", "/usr/bin/systemd-run", "/usr/bin/systemd-run.away"])
    web.run(["systemctl", "restart", "stoker-agent"])
    try:
        ended = result(stoker, start(stoker, HOG, memory_max="64M"))
        assert "memory_max cannot be enforced on this server" in ended["status_reason"]
    finally:
        web.run(["mv", "/usr/bin/systemd-run.away", "/usr/bin/systemd-run"])
        web.run(["systemctl", "restart", "stoker-agent"])
