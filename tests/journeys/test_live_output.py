"""What a run says while it goes on, from the hook to whoever follows: real agents, a real server."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from support.agent_protocol import deploy, shown
from support.agents import OwnAgent, own_agent
from support.availability import memory, reset_memory
from support.events import event_stream
from support.server import served

MB = 1024 * 1024
#: `STOKER_TEST_FLOOD=1024` makes it the whole gigabyte.
FLOOD = int(os.environ.get("STOKER_TEST_FLOOD", "200")) * MB
#: Lines of 64 bytes: a number, and then its rest.
PROGRAM = """#!/usr/bin/env python3
import os, time
part = 16384
rest = b"." * 55 + b"\\n"
began = time.monotonic()
for at in range(0, {lines}, part):
    os.write(1, b"".join(b"%08d" % n + rest for n in range(at, at + part)))
said = "%.1f s, %.1f s of them computing" % (time.monotonic() - began, time.process_time())
open(os.environ["heat_outputs_path"] + ".result", "w").write(said)
"""


@pytest.fixture
def agent(tmp_path):
    with own_agent(tmp_path / "agent") as made:
        yield made


def started(stoker, agent: OwnAgent, name: str) -> str:
    """The id of the server that it is the agent of."""
    agent.enroll(stoker, name)
    agent.start()
    return agent.spoken.id


# What is stored is tested on each kind of database in tests/deployments/test_log_storage.py.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_flood_of_output_stays_within_bounds_everywhere(tmp_path, database_url, agent):
    with served(tmp_path, "--max-log-bytes", str(2 * MB), database=database_url, is_forked=False) as stoker:
        server_id = started(stoker, agent, "flooded")
        warm = deploy(stoker, server_id, "#!/bin/sh\necho warm; sleep 0.5\n")
        stoker.until(lambda: shown(stoker, warm)["status"] == "COMPLETE")
        before = {process.pid: reset_memory(process.pid) for process in (stoker.process, agent.process)}
        lines = FLOOD // 64
        made = deploy(stoker, server_id, PROGRAM.format(lines=lines))
        ends: dict[str, int] = {}
        offsets = []
        with event_stream(stoker, f"/events?subject=deployment:{made['id']}") as events:
            for event in events:
                if event.name == "log":
                    offsets.append(event.data["offset"])
                    ends["stdout"] = event.data["offset"] + event.data["size"]
                    assert event.data["size"] == len(event.data["data"])
                elif event.name == "end":
                    assert event.data["status"] == "COMPLETE", event.data
        # In order; but at the end the tail is told again, whole.
        assert sum(one > two for one, two in pairwise(offsets)) <= 1

        def kept_now() -> list[dict]:
            path = f"/software_deployments/{made['id']}/logs"
            found = stoker.heat("GET", path).body["logs"]
            while page := stoker.heat("GET", f"{path}?after={found[-1]['seq']}").body["logs"]:
                found += page
            return found

        def reaches() -> int:
            return max(each["offset"] + each["size"] for each in kept_now())

        # The report does not wait for the last output longer than a few seconds; that comes all the same.
        stoker.until(lambda: ends["stdout"] == FLOOD or reaches() == FLOOD, 120)
        grown = {pid: memory(pid, "VmHWM") - was for pid, was in before.items()}
        found = kept_now()
        kept = sum(each["size"] for each in found)
        print(f"memory grown by {[g // 1024 for g in grown.values()]} kB (server, agent); kept {kept} bytes")
        print("script took", shown(stoker, made)["output_values"]["result"])
        assert all(size < 100 * MB for size in grown.values())
        assert 1.65 * MB <= kept <= 2 * MB
        head = "".join(each["data"] for each in found if each["offset"] < MB)
        assert head[:MB] == "".join(f"{n:08}{'.' * 55}\n" for n in range(MB // 64))
        last = "".join(each["data"] for each in found)[-64 * 11000 :]
        assert last == "".join(f"{n:08}{'.' * 55}\n" for n in range(lines - 11000, lines))
        stdout = agent.root / "state" / "runs" / made["config_id"] / "stdout"
        assert stdout.stat().st_size == FLOOD
        assert "bytes were cut here" in shown(stoker, made)["output_values"]["deploy_stdout"]


def test_a_killed_server_loses_no_output(tmp_path, database_url, agent):
    with served(tmp_path, database=database_url) as stoker:
        server_id = started(stoker, agent, "one")
        script = "#!/bin/sh\nfor n in $(seq 1 300); do echo line $n; sleep 0.01; done\n"
        made = deploy(stoker, server_id, script)
        stoker.until(lambda: stoker.heat("GET", f"/software_deployments/{made['id']}/logs").body["logs"] != [])
        stoker.kill9()
        stoker.restart()
        stoker.until(lambda: shown(stoker, made)["status"] == "COMPLETE")
        found = stoker.heat("GET", f"/software_deployments/{made['id']}/logs").body["logs"]
        assert "".join(each["data"] for each in found) == "".join(f"line {n}\n" for n in range(1, 301))
