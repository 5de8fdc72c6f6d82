"""One trigger over hundreds of servers, while the server process is killed twice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from subprocess import PIPE

from bench.swarm import Faults, Swarm, enroll_servers
from bench.swarm.connection import Endpoint

from support.processes import running
from support.search import examples
from support.server import served

#: `STOKER_TEST_SEARCH=5` makes it a thousand servers.
SERVERS, AT_ONCE = examples(200), 50


def test_a_thousand_agents_run_a_config_once_despite_kill_9(tmp_path, database_url):
    with served(tmp_path, database=database_url) as stoker:

        def call(verb, path, body):
            ask = stoker.request if path.startswith("/agent") else stoker.heat
            return ask(verb, path, body).body

        config = call("POST", "/software_configs", {"name": "c", "group": "script", "config": "true"})
        servers = enroll_servers(call, [f"s{i}" for i in range(SERVERS)])
        keys = [server["key"] for server in servers.values()]
        swarm = Swarm(Endpoint("127.0.0.1", stoker.port), keys, Faults(duration=0.02, loss=0.01))
        said = {
            "config_id": config["software_config"]["id"],
            "action": "BACKUP",
            "servers": list(servers),
            "max_concurrent": AT_ONCE,
        }
        trigger = call("POST", "/software_triggers", said)["software_trigger"]
        assert (trigger["total"], trigger["running"], trigger["queued"]) == (SERVERS, AT_ONCE, SERVERS - AT_ONCE)

        def shown():
            answer = stoker.heat("GET", f"/software_triggers/{trigger['id']}")
            while answer.status == 503:  # a thousand agents come back at once
                answer = stoker.heat("GET", f"/software_triggers/{trigger['id']}")
            return answer.body["software_trigger"]

        def kill_twice():
            for share in (SERVERS // 4, SERVERS // 2):
                stoker.until(lambda share=share: sum(swarm.begun.values()) >= share, 120)
                stoker.kill9()
                stoker.restart()
            killed.set()

        killed = threading.Event()
        killer = threading.Thread(target=kill_twice)
        killer.start()
        asyncio.run(swarm.run(lambda: killed.is_set() and shown()["status"] != "IN_PROGRESS"))
        killer.join()

        ended = shown()
        assert (ended["status"], ended["complete"], ended["failed"], ended["queued"]) == ("COMPLETE", SERVERS, 0, 0)
        assert len(swarm.begun) == SERVERS
        assert set(swarm.begun.values()) == {1}
        assert swarm.most_running <= AT_ONCE
        assert {each["status"] for each in ended["targets"]} == {"COMPLETE"}
        assert len({each["deployment_id"] for each in ended["targets"]}) == SERVERS


def test_the_swarm_command_enrolls_agents_and_reports_them(tmp_path):
    with served(tmp_path) as stoker:
        token = tmp_path / "token"
        token.write_text(stoker.heat("POST", "/enrollments", {"limit": 20}).body["enrollment"]["token"])
        command = ["bench.swarm", "--url", stoker.url, "--agents", "20", "--processes", "2", "--interval", "1"]

        with running([sys.executable, "-m", *command, "--token-file", str(token)], stdout=PIPE, text=True) as swarm:
            reports = (json.loads(line) for line in swarm.stdout)
            last = next(report for report in reports if report["polling"] == 20)
        refused = subprocess.run(
            [sys.executable, "-m", *command, "--token-file", str(token), "--name", "more"],
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert last["counts"]["documents"] == 20
    assert set(last["milliseconds"]) == {"connect", "document", "enroll"}
    assert last["interval"]["counts"]["polls"] <= last["counts"]["polls"]
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "cannot be enrolled: " in refused.stderr
