"""`stoker relay run`: real and simulated agents reach Stoker through a relay, through failures of each."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import signal
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pytest
from bench.swarm import Swarm, enroll_servers
from bench.swarm.connection import Endpoint

from support.agent_protocol import SpokenAgent, deploy, shown, spoken_agent, trade
from support.agents import enrolled_agent
from support.certificates import Authority
from support.faulty_line import FaultyLine, faulty_line
from support.server import Served, served
from support.site_relay import SiteRelay, site_relay
from support.sockets import count_connections
from support.templates import config, define, deployment, template

AGENTS = 200


@pytest.fixture
def line(stoker) -> Iterator[FaultyLine]:
    """The line between the relay and Stoker, which can be cut."""
    with faulty_line(stoker.port) as cuttable:
        yield cuttable


@pytest.fixture
def site(tmp_path, stoker, line) -> Iterator[SiteRelay]:
    with site_relay(tmp_path / "site", stoker, center=line.url, name=f"site-{tmp_path.name}") as running:
        yield running


def through(site: SiteRelay, agent: SpokenAgent) -> SpokenAgent:
    """The same agent, with the relay's URL."""
    return SpokenAgent(site, agent.id, agent.name, agent.key)


def runs(stoker: Served, id: str) -> list[dict]:
    return list(stoker.json("deployment", "history", id))


def test_agents_run_a_stack_through_the_relay(stoker, site, tmp_path):
    with ExitStack() as left:
        for name in ("web", "db"):
            left.enter_context(enrolled_agent(tmp_path / name, stoker, name, site.url))
        stoker.until(lambda: {stoker.json("server", "show", name)["status"] for name in ("web", "db")} == {"ONLINE"})
        resources = {
            "web": define("OS::Heat::DeployedServer", name="web"),
            "db": define("OS::Heat::DeployedServer", name="db"),
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
    refused = stoker.run("server", "enroll", "other", "--relay", "nowhere", check=False)
    assert refused.returncode and "nowhere" in refused.stderr


def call(stoker: Served, verb: str, path: str, body: Any = None) -> Any:
    """Call an API until a process answers."""
    while True:
        with suppress(OSError):
            answer = (stoker.request if path.startswith("/agent") else stoker.heat)(verb, path, body)
            if answer.status < 300:
                return answer.body


def run_trigger(stoker: Served, config_id: str, servers: list[str]) -> None:
    body = {"config_id": config_id, "servers": servers}
    trigger = call(stoker, "POST", "/software_triggers", body)["software_trigger"]["id"]

    def show() -> dict:
        return dict(call(stoker, "GET", f"/software_triggers/{trigger}")["software_trigger"])

    stoker.until(lambda: show()["status"] != "IN_PROGRESS", 240)
    assert (show()["status"], show()["complete"]) == ("COMPLETE", len(servers))


def test_many_agents_share_few_connections_and_no_kill_of_the_relay_or_of_stoker_loses_or_repeats_a_run(stoker, site):
    def check_connections() -> None:
        connections = count_connections([site.process.pid], int(site.center.rpartition(":")[2]))
        assert 1 <= connections <= 18  # 16 for requests that are passed on, one or two for the stream

    def kill_each() -> None:
        for count, victim in enumerate((site, stoker, site, stoker), 1):
            stoker.until(lambda count=count: swarm.begun.total() >= AGENTS + count * AGENTS // 2, 240)
            victim.kill9()
            victim.start()

    def journey() -> None:
        stoker.until(lambda: swarm.statistics.counts["documents"] >= AGENTS and site.health()["polls"] == AGENTS, 240)
        check_connections()
        run_trigger(stoker, config_id, ids)
        check_connections()
        metrics = site.metrics()
        assert metrics["stoker_relay_agents"] == AGENTS
        results = '{method="POST",route="/agent/v1/runs/{config_id}/signal",status="200"}'
        assert metrics[f"stoker_relay_requests_total{results}"] == AGENTS
        assert metrics["stoker_relay_center_up"] == 1
        assert len(swarm.begun) == AGENTS
        with ThreadPoolExecutor(1) as executor:
            kills = executor.submit(kill_each)
            while not kills.done():
                run_trigger(stoker, config_id, ids)
            kills.result()

    async def run() -> None:
        async with swarm.agents(), asyncio.timeout(600):
            await asyncio.to_thread(journey)

    servers = enroll_servers(partial(call, stoker), [f"swarm{number}" for number in range(AGENTS)])
    swarm = Swarm(Endpoint.parse(site.url), [server["key"] for server in servers.values()], duration=0.02)
    config = {"name": "c", "group": "script", "config": "true"}
    config_id = call(stoker, "POST", "/software_configs", config)["software_config"]["id"]
    ids = [server["id"] for server in servers.values()]
    asyncio.run(run())
    # An attempt without an answer may have created another trigger, whose runs are single, too.
    assert set(swarm.begun.values()) == {1}


def test_runs_that_are_cancelled_while_the_relay_is_dead_end_and_never_begin(stoker, site, tmp_path):
    with enrolled_agent(tmp_path, stoker, "cancelled", site.url) as agent:
        server = agent.spoken.id
        script = "#!/bin/sh\necho running >> $WORK/runs\nsleep 1000 & wait\n"
        running = deploy(stoker, server, script, options={"on_cancel": "#!/bin/sh\necho cleaned\n"})
        stoker.until(lambda: agent.lines() == ["running"])
        queued = deploy(stoker, server, "#!/bin/sh\necho queued >> $WORK/runs\n")
        stoker.until(lambda: runs(stoker, queued["id"])[0]["delivered_time"] is not None)  # the receipt is passed on
        site.kill9()
        for each in (running, queued):
            assert stoker.heat("POST", f"/software_deployments/{each['id']}/cancel").status == 202
        assert agent.lines() == ["running"]
        site.start()
        stoker.until(lambda: [shown(stoker, each)["status"] for each in (running, queued)] == ["FAILED", "FAILED"])
        assert "ended by TERM" in shown(stoker, running)["status_reason"]
        assert stoker.run("deployment", "logs", running["id"]).stdout == "cleaned\n"
        assert agent.lines() == ["running"]


def test_polls_wait_and_reports_are_refused_while_stoker_is_away(stoker, line, site):
    agent, unknown = through(site, spoken_agent(stoker)), through(site, spoken_agent(stoker))
    made = deploy(stoker, agent.id)
    document = agent.document()
    [run] = document.body["deployments"]
    assert agent.document(etag=document.headers["ETag"]).status == 304
    line.go()
    stoker.until(lambda: not site.health()["center_reachable"])
    assert agent.document(wait=1, etag=document.headers["ETag"]).status == 304
    stranger = SpokenAgent(site, agent.id, agent.name, agent.key[:-4] + "AAAA")
    for answer in (
        agent.document(),
        unknown.document(wait=1, etag=document.headers["ETag"]),
        stranger.document(wait=1, etag=document.headers["ETag"]),
        agent.call("POST", f"/runs/{run['id']}/signal", {"deploy_status_code": 0}),
        agent.call("PUT", "/facts", {"cpus": 1}),
        agent.log(run["id"], 0, b"text"),
    ):
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    # A change in the outage reaches the poll that waits for it.
    with ThreadPoolExecutor(1) as executor:
        waiting = executor.submit(agent.document, 60, document.headers["ETag"])
        stoker.until(lambda: site.health()["polls"] == 1)
        later = deploy(stoker, agent.id)
        line.come()
        changed = waiting.result(60)
    assert [entry["deployment_id"] for entry in changed.body["deployments"]] == [made["id"], later["id"]]
    assert agent.call("POST", f"/runs/{run['id']}/signal", {"deploy_status_code": 0}).status == 200
    assert shown(stoker, made)["status"] == "COMPLETE"
    assert unknown.document().status == 200


def test_a_removed_server_and_a_second_poll_end_a_held_poll(stoker, site):
    agent = through(site, spoken_agent(stoker))
    tag = agent.document().headers["ETag"]
    with ThreadPoolExecutor(2) as executor:
        first = executor.submit(agent.document, 60, tag)
        stoker.until(lambda: site.health()["polls"] == 1)
        second = executor.submit(agent.document, 60, tag)
        superseded = first.result(60)
        assert (superseded.status, superseded.headers["Retry-After"]) == (304, "10")
        assert stoker.heat("DELETE", f"/servers/{agent.id}").status == 204
        assert second.result(60).status == 401
    assert agent.document().status == 401


def test_an_agent_asks_the_relay_again_whether_its_server_is_approved(stoker, site):
    token = stoker.heat("POST", "/enrollments", {"limit": 1, "approval": True}).body["enrollment"]["token"]
    pending = trade(stoker, token, "pending").body
    agent = SpokenAgent(site, pending["server_id"], "pending", pending["key"])
    answer = agent.call("GET", "/approval?wait=60")
    assert (answer.body["status"], answer.headers["Retry-After"]) == ("PENDING_APPROVAL", "5")
    assert stoker.heat("POST", f"/servers/{agent.id}/approve").status == 200
    answer = agent.call("GET", "/approval?wait=60")
    assert (answer.body["status"], answer.headers.get("Retry-After")) == ("APPROVED", None)


def test_the_program_the_script_and_hooks_are_downloaded_through_the_relay(stoker, line, site):
    agent = through(site, spoken_agent(stoker))
    hook = b"#!/bin/sh\necho hook\n"
    digest = hashlib.sha256(hook).hexdigest()
    body = {"name": "shout", "content": base64.b64encode(hook).decode()}
    assert stoker.heat("POST", "/hooks", body).status == 201
    paths = (f"/hooks/{digest}", "/stoker-agent.pyz", "/install")
    for _ in range(2):
        answers = [agent.call("GET", path) for path in paths]
        assert [answer.status for answer in answers] == [200, 200, 200]
        assert answers[0].raw == hook
        assert answers[1].raw == stoker.request("GET", "/agent/v1/stoker-agent.pyz").raw
        assert site.url.encode() in answers[2].raw and stoker.url.encode() not in answers[2].raw
    for query, tag, expected in (("", answers[1].headers["ETag"], 304), ("?x=1", '"other"', 200)):
        again = agent.call("GET", f"/stoker-agent.pyz{query}", If_None_Match=tag)
        assert (again.status, again.raw) == (expected, answers[1].raw if expected == 200 else b"")
    assert SpokenAgent(site, "", "", "wrong").call("GET", paths[0]).status == 401
    line.go()
    assert [agent.call("GET", path).status for path in paths] == [503, 503, 503]


def test_a_deleted_relay_serves_no_documents(stoker, tmp_path):
    with site_relay(tmp_path, stoker, name="short-lived") as site:
        agent = through(site, spoken_agent(stoker))
        tag = agent.document().headers["ETag"]
        assert agent.document(etag=tag).status == 304
        with ThreadPoolExecutor(1) as executor:
            waiting = executor.submit(agent.document, 60, tag)
            stoker.until(lambda: site.health()["polls"] == 1)
            stoker.run("relay", "delete", "short-lived", "--yes")
            stoker.until(lambda: "refuses the key of this relay" in str(site.health()["center_problem"]))
            deploy(stoker, agent.id)
            assert agent.document().status == 503
            assert agent.document(wait=1, etag=tag).status == 304
            assert waiting.result(60).status == 304  # superseded
        site.process.terminate()
        assert site.process.wait(60) in (0, -signal.SIGTERM)


def test_https_on_both_sides_with_private_authorities(tmp_path):
    """Both certificates are renewed while agents work; a certificate of another authority is refused."""
    own, other = Authority(tmp_path / "center-ca"), Authority(tmp_path / "relay-ca", "the relay's CA")
    own.issue("127.0.0.1")
    first = other.issue("127.0.0.1")
    tls = (*own.flags, "--tls-ca", str(own.file))
    tmp_path.joinpath("center").mkdir()
    with (
        served(tmp_path / "center", *tls, ca_file=own.file) as stoker,
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
        stoker.until(lambda: shown(stoker, made)["status"] == "COMPLETE")
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
