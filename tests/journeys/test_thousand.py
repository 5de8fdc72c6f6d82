"""One trigger over hundreds of servers, while the server process is killed twice."""

from __future__ import annotations

import asyncio
import threading

from bench.fleet import Fleet, enrolled

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
        servers = enrolled(call, [f"s{i}" for i in range(SERVERS)])
        fleet = Fleet("127.0.0.1", stoker.port, {name: each["key"] for name, each in servers.items()}, takes=0.02)
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
                stoker.until(lambda share=share: sum(fleet.begun.values()) >= share, 120)
                stoker.kill9()
                stoker.restart()
            killed.set()

        killed = threading.Event()
        killer = threading.Thread(target=kill_twice)
        killer.start()
        asyncio.run(fleet.run(lambda: killed.is_set() and shown()["status"] != "IN_PROGRESS"))
        killer.join()

        ended = shown()
        assert (ended["status"], ended["complete"], ended["failed"], ended["queued"]) == ("COMPLETE", SERVERS, 0, 0)
        assert len(fleet.begun) == SERVERS
        assert set(fleet.begun.values()) == {1}
        assert fleet.most_running <= AT_ONCE
        assert {each["status"] for each in ended["targets"]} == {"COMPLETE"}
        assert len({each["deployment_id"] for each in ended["targets"]}) == SERVERS
