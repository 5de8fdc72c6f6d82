"""`stoker relay run`: real and simulated agents reach Stoker through a relay, through failures of each."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from bench.swarm import Faults, Swarm, enroll_servers
from bench.swarm.connection import Endpoint

from support.agent_protocol import SpokenAgent, deploy, spoken_agent
from support.agents import OwnAgent, own_agent
from support.certificates import Authority
from support.install_line import Machine
from support.relay import Relay, relay
from support.server import Served, served
from support.site_relay import SiteRelay, site_relay
from support.templates import config, deployment, template

AGENTS = 300


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("centre")) as running:
        yield running


@pytest.fixture
def line(stoker) -> Iterator[Relay]:
    """The line between the relay and Stoker, which can be cut."""
    with relay(stoker.port) as cuttable:
        yield cuttable


@pytest.fixture
def site(tmp_path, stoker, line) -> Iterator[SiteRelay]:
    with site_relay(tmp_path / "site", stoker, centre=line.url, name=f"site-{tmp_path.name}") as running:
        yield running


def through(site: SiteRelay, agent: SpokenAgent) -> SpokenAgent:
    """The same agent, with the relay's URL."""
    return SpokenAgent(site, agent.id, agent.name, agent.key)


@contextmanager
def enrolled_agent(folder: Path, stoker: Served, site: SiteRelay, name: str) -> Iterator[OwnAgent]:
    """A real agent, enrolled and running through the relay."""
    token = stoker.json("server", "enroll", name)["enrollment"]["token"]
    with own_agent(folder) as agent:
        enroll = [sys.executable, "-m", "stoker_agent", "enroll", "--url", site.url, "--root", str(agent.root)]
        subprocess.run(enroll, input=token.encode(), check=True, capture_output=True)
        agent.start()
        yield agent


def status(stoker: Served, id: str) -> str:
    return str(stoker.heat("GET", f"/software_deployments/{id}").body["software_deployment"]["status"])


def runs(stoker: Served, id: str) -> list[dict]:
    return list(stoker.json("deployment", "history", id))


def test_agents_run_a_stack_through_the_relay(stoker, site, tmp_path):
    with ExitStack() as left:
        for name in ("web", "db"):
            folder = tmp_path / name
            folder.mkdir()
            left.enter_context(enrolled_agent(folder, stoker, site, name))
        stoker.until(lambda: {stoker.json("server", "show", name)["status"] for name in ("web", "db")} == {"ONLINE"})
        resources = {
            "web": {"type": "OS::Heat::DeployedServer", "properties": {"name": "web"}},
            "db": {"type": "OS::Heat::DeployedServer", "properties": {"name": "db"}},
            "config": config("#!/bin/sh\necho out of $who\necho $who > $heat_outputs_path.said", outputs=("said",)),
            "one": deployment(server="web", input_values={"who": "one"}),
            "two": deployment(server="db", input_values={"who": {"get_attr": ["one", "said"]}}),
        }
        outputs = {"said": {"value": {"get_attr": ["two", "said"]}}}
        path = tmp_path / "t.json"
        path.write_text(json.dumps(template(resources, outputs=outputs)))
        stoker.run("stack", "create", "through-a-relay", "-t", str(path), "--wait")
        shown = stoker.json("stack", "outputs", "through-a-relay")
        assert [each["output_value"] for each in shown] == ["one\n"]
        # The facts of the machines have come through the relay, too.
        stoker.until(lambda: "python" in json.dumps(stoker.heat("GET", "/servers?name=web").body))
    [listed] = [each for each in stoker.json("relay", "list") if each["url"] == site.url]
    assert listed["version"] and listed["last_seen"]


def test_many_agents_share_few_connections(stoker, site):
    keys = enroll_servers(
        lambda verb, path, body: (
            (stoker.request(verb, path, body) if path.startswith("/agent") else stoker.heat(verb, path, body)).body
        ),
        [f"swarm{number}" for number in range(AGENTS)],
    )
    swarm = Swarm(Endpoint.parse(site.url), [each["key"] for each in keys.values()])

    async def journey() -> None:
        async with swarm.agents(), asyncio.timeout(300):
            while swarm.statistics.counts["documents"] < AGENTS or site.health()["polls"] < AGENTS:
                await asyncio.sleep(0.1)
            idle = await asyncio.to_thread(site.connections_to, int(site.centre.rpartition(":")[2]))
            assert 1 <= idle <= 20  # 16 for requests that are passed on, one or two for the batch
            trigger = await asyncio.to_thread(start_trigger)
            while (shown := await asyncio.to_thread(show, trigger))["status"] == "IN_PROGRESS":
                await asyncio.sleep(0.2)
            assert shown["status"] == "COMPLETE", shown
            busy = await asyncio.to_thread(site.connections_to, int(site.centre.rpartition(":")[2]))
            assert busy <= 20
            metrics = await asyncio.to_thread(site.metrics)
            assert metrics["stoker_relay_agents"] == AGENTS
            assert metrics['stoker_relay_requests_total{kind="result",status="200"}'] >= AGENTS
            assert (metrics["stoker_relay_centre_up"], metrics["stoker_relay_spool_requests"]) == (1, 0)

    def start_trigger() -> str:
        body = {"name": "all", "group": "script", "config": "true"}
        config_id = stoker.heat("POST", "/software_configs", body).body["software_config"]["id"]
        servers = [each["id"] for each in keys.values()]
        answer = stoker.heat("POST", "/software_triggers", {"config_id": config_id, "servers": servers})
        assert answer.status in (200, 201), answer.raw
        return str(answer.body["software_trigger"]["id"])

    def show(id: str) -> dict:
        return dict(stoker.heat("GET", f"/software_triggers/{id}").body["software_trigger"])

    asyncio.run(journey())
    assert len(swarm.begun) == AGENTS
    assert set(swarm.begun.values()) == {1}


def test_results_survive_an_outage_and_a_kill_of_the_relay(stoker, line, site, tmp_path):
    """The script runs and ends while Stoker is away; the relay dies with the result, which arrives once."""
    with enrolled_agent(tmp_path, stoker, site, "outage") as agent:
        stoker.until(lambda: stoker.json("server", "show", "outage")["status"] == "ONLINE")
        server = stoker.json("server", "show", "outage")["id"]
        script = "#!/bin/sh\necho run >> $WORK/runs\nwhile [ ! -e $WORK/go ]; do sleep 0.05; done\necho done\n"
        made = deploy(stoker, server, script)
        stoker.until(lambda: agent.lines() == ["run"])
        line.go()
        agent.work.joinpath("go").touch()
        stoker.until(lambda: list(agent.root.rglob("acknowledged")))
        agent.end()  # the agent has its acknowledgement and does not send the result again
        assert status(stoker, made["id"]) == "IN_PROGRESS"
        spool = b"".join(path.read_bytes() for path in site.state_dir.glob("relay.db*"))
        key = json.loads(agent.root.joinpath("etc", "agent.json").read_text())["key"]
        assert key.encode() not in spool
        assert b"deploy_stdout" not in spool
        site.kill9()
        site.start()
        assert site.health()["spooled_requests"] > 0
        line.come()
        stoker.until(lambda: status(stoker, made["id"]) == "COMPLETE")
        stoker.until(lambda: site.health()["spooled_requests"] == 0)
    assert agent.lines() == ["run"]
    assert [run["status"] for run in runs(stoker, made["id"])] == ["COMPLETE"]
    output = stoker.run("deployment", "logs", made["id"]).stdout
    assert output.count("done") == 1


def test_only_known_agents_are_served_while_stoker_is_away(stoker, line, site):
    known, unknown = through(site, spoken_agent(stoker)), through(site, spoken_agent(stoker))
    made = deploy(stoker, known.id)
    document = known.document()
    assert document.status == 200
    [run] = document.body["deployments"]
    line.go()
    assert known.document(wait=1, etag=document.headers["ETag"]).status == 304
    again = known.document()
    assert (again.status, again.raw) == (200, document.raw)  # from memory, for an agent that has restarted
    for agent in (unknown, SpokenAgent(site, known.id, known.name, known.key[:-4] + "AAAA")):
        for answer in (
            agent.document(),
            agent.document(wait=1, etag=document.headers["ETag"]),
            agent.call("POST", f"/runs/{run['id']}/signal", {"deploy_status_code": 0}),
        ):
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    # Output and result in the order in which the agent sent them; the later facts replace the earlier ones.
    assert known.log(run["id"], 0, b"one ").body == {"offset": 4}
    assert known.log(run["id"], 4, b"two").body == {"offset": 7}
    for number in (1, 2):
        assert known.call("PUT", "/facts", {"cpus": number}).status == 204
    assert known.call("POST", f"/runs/{run['id']}/signal", {"deploy_status_code": 0, "result": "r"}).status == 200
    assert site.health()["spooled_requests"] == 4
    line.come()
    stoker.until(lambda: status(stoker, made["id"]) == "COMPLETE")
    stoker.until(lambda: site.health()["spooled_requests"] == 0)
    outputs = stoker.heat("GET", f"/software_deployments/{made['id']}").body["software_deployment"]["output_values"]
    assert outputs["result"] == "r"
    assert stoker.run("deployment", "logs", made["id"]).stdout.strip() == "one two"
    assert stoker.heat("GET", f"/servers/{known.id}").body["server"]["facts"]["cpus"] == 2
    assert unknown.document().status == 200


def test_a_full_spool_refuses_reports_and_loses_none(tmp_path, stoker, line):
    with site_relay(tmp_path, stoker, "--spool-mb", "1", centre=line.url, name="full") as site:
        agent = through(site, spoken_agent(stoker))
        made = deploy(stoker, agent.id)
        [run] = agent.document().body["deployments"]
        line.go()
        assert agent.log(run["id"], 0, b"x" * 250_000).status == 200
        answers = [agent.log(run["id"], offset, b"x" * 250_000) for offset in range(250_000, 1_250_000, 250_000)]
        assert [answer.status for answer in answers] == [200, 200, 200, 503]
        line.come()
        assert agent_until(stoker, lambda: agent.log(run["id"], 1_000_000, b"end")).body == {"offset": 1_000_003}
        assert agent.call("POST", f"/runs/{run['id']}/signal", {"deploy_status_code": 0}).status == 200
        stoker.until(lambda: status(stoker, made["id"]) == "COMPLETE")
        assert len(stoker.run("deployment", "logs", made["id"]).stdout.strip()) >= 1_000_003


def agent_until(stoker: Served, ask):
    """Repeat a request until it is accepted."""
    answers = []

    def accepted() -> bool:
        answers.append(ask())
        return answers[-1].status == 200

    stoker.until(accepted)
    return answers[-1]


def test_downloads_come_from_the_cache_while_stoker_is_away(stoker, line, site):
    agent, stranger = through(site, spoken_agent(stoker)), through(site, spoken_agent(stoker))
    hook = b"#!/bin/sh\necho hook\n"
    digest = hashlib.sha256(hook).hexdigest()
    body = {"name": "shout", "content": base64.b64encode(hook).decode()}
    assert stoker.heat("POST", "/hooks", body).status == 201
    paths = (f"/hooks/{digest}", "/stoker-agent.pyz", "/install")
    before = [agent.call("GET", path) for path in paths]
    assert [answer.status for answer in before] == [200, 200, 200]
    assert before[0].raw == hook
    assert before[1].raw == stoker.request("GET", "/agent/v1/stoker-agent.pyz").raw
    assert site.url.encode() in before[2].raw and stoker.url.encode() not in before[2].raw
    assert SpokenAgent(site, "", "", "wrong").call("GET", paths[0]).status == 401
    line.go()
    assert [agent.call("GET", path).raw for path in paths] == [answer.raw for answer in before]
    assert stranger.call("GET", paths[0]).status == 503
    # An altered file is not served.
    (site.state_dir / "downloads" / digest).write_bytes(b"#!/bin/sh\necho other\n")
    assert agent.call("GET", paths[0]).status == 503


def test_the_install_line_of_a_relay_enrolls_through_it(tmp_path, stoker, site):
    [name] = [each["name"] for each in stoker.json("relay", "list") if each["url"] == site.url]
    line = stoker.json("server", "enroll", "by-line", "--relay", name)["enrollment"]
    assert line["url"] == site.url
    machine = Machine(tmp_path)
    try:
        pasted = machine.paste(line["command"])
        assert machine.config["url"] == site.url, pasted.stderr
    finally:
        machine.end()
    refused = stoker.run("server", "enroll", "other", "--relay", "nowhere", check=False)
    assert refused.returncode and "nowhere" in refused.stderr


def test_a_deleted_relay_serves_no_documents(stoker, tmp_path):
    with site_relay(tmp_path, stoker, name="short-lived") as site:
        agent = through(site, spoken_agent(stoker))
        tag = agent.document().headers["ETag"]
        waiting = threading.Thread(target=agent.document, kwargs={"wait": 30, "etag": tag})
        waiting.start()
        stoker.run("relay", "delete", "short-lived", "--yes")
        stoker.until(lambda: "polls.refused" in site.output)
        deploy(stoker, agent.id)
        assert agent.document(wait=1, etag=tag).status == 304
        site.process.terminate()
        waiting.join(60)
        assert not waiting.is_alive()


def test_https_on_both_sides_with_private_authorities(tmp_path):
    """Both certificates are renewed while agents work; a certificate of another authority is refused."""
    own, other = Authority(tmp_path / "centre-ca"), Authority(tmp_path / "relay-ca", "the relay's CA")
    own.issue("127.0.0.1")
    first = other.issue("127.0.0.1")
    tls = (*own.flags, "--tls-ca", str(own.file))
    tmp_path.joinpath("centre").mkdir()
    with (
        served(tmp_path / "centre", *tls, ca_file=own.file) as stoker,
        site_relay(tmp_path, stoker, *other.flags, "--ca-file", str(own.file), ca_file=other.file) as site,
    ):
        agent = through(site, spoken_agent(stoker))
        made = deploy(stoker, agent.id)
        [run] = agent.document().body["deployments"]
        assert serial_number(site) == first
        own.issue("127.0.0.1")
        renewed = other.issue("127.0.0.1")
        assert serial_number(site) == renewed
        assert agent.call("POST", f"/runs/{run['id']}/signal", {"deploy_status_code": 0}).status == 200
        stoker.until(lambda: status(stoker, made["id"]) == "COMPLETE")
        other.key.write_text("no key")
        assert serial_number(site) == renewed  # the previous certificate stays in use
        assert "tls.reload_failed" in site.output
        with site_relay(tmp_path / "wrong", stoker, "--ca-file", str(other.file), name="wrong") as wrong:
            assert through(wrong, agent).call("GET", "/install").status == 503
            assert "CERTIFICATE_VERIFY_FAILED" in wrong.output


def serial_number(site: SiteRelay) -> int:
    """Return the number of the certificate in a handshake."""
    context = ssl.create_default_context(cafile=str(site.ca_file))
    with (
        socket.create_connection(("127.0.0.1", site.port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        certificate = connection.getpeercert()
    return int(str(certificate["serialNumber"]), 16)


def test_kills_of_the_relay_and_of_stoker_under_load_lose_and_repeat_nothing(tmp_path):
    """Agents report through the relay; every trigger ends, although both are killed while results are under way."""
    tmp_path.joinpath("centre").mkdir()
    with served(tmp_path / "centre") as stoker, site_relay(tmp_path, stoker) as site:

        def call(verb: str, path: str, body: Any = None) -> Any:
            while True:
                with suppress(OSError):
                    answer = (stoker.request if path.startswith("/agent") else stoker.heat)(verb, path, body)
                    if answer.status < 300:
                        return answer.body

        servers = enroll_servers(call, [f"swarm{number}" for number in range(60)])
        keys = [server["key"] for server in servers.values()]
        swarm = Swarm(Endpoint.parse(site.url), keys, Faults(duration=0.02, spread=0.02), wait=5)
        body = {"name": "c", "group": "script", "config": "true"}
        config_id = call("POST", "/software_configs", body)["software_config"]["id"]
        body = {"config_id": config_id, "servers": list(servers)}

        def kill_each() -> None:
            for count, victim in enumerate((site, stoker, site, stoker), 1):
                stoker.until(lambda count=count: swarm.begun.total() >= count * len(keys) // 2, 240)
                victim.kill9()
                victim.start()

        def journey() -> bool:
            if not triggers or show(triggers[-1])["status"] != "IN_PROGRESS":
                if len(triggers) == 4:
                    return not killer.is_alive()
                triggers.append(call("POST", "/software_triggers", body)["software_trigger"]["id"])
            return False

        def show(id: str) -> dict:
            return dict(call("GET", f"/software_triggers/{id}")["software_trigger"])

        triggers: list[str] = []
        killer = threading.Thread(target=kill_each)
        killer.start()
        try:
            asyncio.run(swarm.run(journey))
        finally:
            killer.join()
        ended = [show(id) for id in triggers]
        assert [(each["status"], each["complete"]) for each in ended] == [("COMPLETE", len(keys))] * 4
        # An attempt without an answer may have created another trigger, whose runs are single, too.
        assert set(swarm.begun.values()) == {1}
        stoker.until(lambda: site.health()["spooled_requests"] == 0)
