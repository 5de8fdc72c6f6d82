"""GET /metrics: what a monitoring system reads, parsed as Prometheus parses it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from support.agent_protocol import SpokenAgent, deploy, spoken_agent
from support.server import Served, served_on

pytestmark = pytest.mark.slow

TOKEN = "a-token-for-monitoring-that-nobody-guesses"
OF_THE_SITE = ("stoker_agents", "stoker_jobs", "stoker_job_lag_seconds", "stoker_database_bytes")
DOCUMENTED = re.compile(r"^\| `(stoker_\w+)`", re.MULTILINE)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory) -> Iterator[Served]:
    with served_on(request, tmp_path_factory.mktemp("metrics"), "--metrics-token", TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def first_run(stoker) -> tuple[SpokenAgent, Mapping[str, Metric]]:
    """
    The first agent, and the metrics after it has completed one run, with one poll that brought it and one without news.
    """
    agent = spoken_agent(stoker)
    deploy(stoker, agent.id)
    first = agent.document()
    run = first.body["deployments"][0]["id"]
    assert agent.document(etag=first.headers["ETag"]).status == 304
    assert agent.call("POST", f"/runs/{run}/signal", {"deploy_status_code": 0}).status == 200
    # The delivery and the first job of the site are recorded in the background.
    stoker.until(lambda: count(families(stoker), "stoker_delivery_seconds") == 1)
    stoker.until(lambda: bool(families(stoker)["stoker_jobs_ended"].samples))
    return agent, families(stoker)


@pytest.fixture(scope="module")
def agent(first_run) -> SpokenAgent:
    return first_run[0]


def families(stoker: Served) -> dict[str, Metric]:
    answer = stoker.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200, answer.raw
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {family.name: family for family in text_string_to_metric_families(answer.raw.decode())}


def value(family: Metric, name: str = "", **labels: str) -> float:
    """The sum of the samples with these labels."""
    name = name or family.name
    samples = [sample for sample in family.samples if sample.name == name and labels.items() <= sample.labels.items()]
    assert samples, f"{name} {labels}: not in {family.samples}"
    return sum(sample.value for sample in samples)


def count(found: Mapping[str, Metric], name: str) -> float:
    return value(found[name], f"{name}_count")


def test_a_run_appears_in_every_metric_that_it_concerns(first_run):
    _, found = first_run
    assert count(found, "stoker_delivery_seconds") == 1
    assert count(found, "stoker_signal_seconds") == 1
    assert value(found["stoker_delivery_seconds"], "stoker_delivery_seconds_sum") > 0
    requests, route = found["stoker_http_requests"], "/agent/v1/document"
    assert value(requests, "stoker_http_requests_total", route=route, status="200", method="GET") == 1
    assert value(requests, "stoker_http_requests_total", route=route, status="304") == 1
    signalled = {"route": "/agent/v1/runs/{config_id}/signal", "method": "POST"}
    assert value(requests, "stoker_http_requests_total", **signalled) == 1
    handlers = found["stoker_http_handler_seconds"]
    assert (
        value(handlers, "stoker_http_handler_seconds_count", api="agent") >= 1
    )  # enrollment; polls and results are batches
    for name in ("stoker_write_seconds", "stoker_commit_seconds", "stoker_commit_transactions"):
        assert count(found, name) > 2
    assert value(found["stoker_commit_transactions"], "stoker_commit_transactions_sum") >= count(
        found, "stoker_commit_transactions"
    )
    assert value(found["stoker_jobs_ended"], "stoker_jobs_ended_total", outcome="success") >= 1


def test_gauges_show_the_present(stoker, agent):
    found = families(stoker)
    used = value(found["stoker_database_connections_in_use"])
    assert 0 <= used <= value(found["stoker_database_connections_max"])
    assert value(found["stoker_healthy"]) == 1
    assert value(found["stoker_database_bytes"]) > 100_000
    assert abs(value(found["stoker_clock_difference_seconds"])) < 60
    assert {sample.labels["state"] for sample in found["stoker_jobs"].samples} == {"due", "running", "later"}
    assert value(found["stoker_job_lag_seconds"]) >= 0
    assert {sample.labels["status"] for sample in found["stoker_agents"].samples} >= {"ONLINE", "OFFLINE"}
    assert value(found["process_cpu_seconds"], "process_cpu_seconds_total") > 0
    parts = {sample.labels["part"]: sample.value for sample in found["stoker_notifier_up"].samples}
    database = found["stoker_process_info"].samples[0].labels["database"]
    assert parts == ({} if database == "sqlite" else {"listener": 1, "sender": 1})


def test_a_held_poll_counts_while_it_waits(stoker, agent):
    before = value(families(stoker)["stoker_held_polls"])
    etag = agent.document().headers["ETag"]
    poll = threading.Thread(target=agent.document, kwargs={"wait": 60, "etag": etag})
    poll.start()
    stoker.until(lambda: value(families(stoker)["stoker_held_polls"]) == before + 1)
    deploy(stoker, agent.id)  # answers the poll
    poll.join(60)
    assert not poll.is_alive()
    stoker.until(lambda: value(families(stoker)["stoker_held_polls"]) == before)


def test_every_sample_names_its_process(stoker):
    found = families(stoker)
    samples = [sample for name, family in found.items() if name not in OF_THE_SITE for sample in family.samples]
    assert len(samples) > 100
    assert len({sample.labels["process"] for sample in samples}) == 1
    assert not any("process" in sample.labels for name in OF_THE_SITE for sample in found[name].samples)


def test_the_documentation_has_every_metric(stoker, agent):
    documented = set(DOCUMENTED.findall((Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()))
    names = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in families(stoker).values()
        if family.name.startswith("stoker_")
    }
    assert names == documented


def test_words_of_clients_are_no_labels(stoker):
    for verb, path in (("GET", "/made/up"), ("BREW", "/metrics"), ("GET", "/v1/x/nothing")):
        stoker.request(verb, path, headers={"X-Auth-Token": "x"})
    requests = families(stoker)["stoker_http_requests"]
    assert value(requests, "stoker_http_requests_total", route="", method="") >= 2
    assert {sample.labels["method"] for sample in requests.samples} <= {"", "GET", "POST", "PUT", "PATCH", "DELETE"}


def test_only_the_token_and_administrators_of_the_site_read_metrics(stoker):
    def status(**headers: str) -> int:
        return stoker.request("GET", "/metrics", headers=headers).status

    assert status() == 401
    assert status(Authorization="Bearer wrong") == 401
    assert status(Authorization="Bearer ") == 401
    assert status(Authorization=f"Basic {TOKEN}") == 401
    assert status(**{"X-Auth-Token": stoker.token}) == 200  # the administrator's
