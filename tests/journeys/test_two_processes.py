"""Any number of processes on one PostgreSQL: what one commits, the others' agents hear."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support import databases, waiting
from support.agent_protocol import SpokenAgent, deploy, spoken_agent
from support.faulty_line import FaultyLine, faulty_line
from support.own_postgresql import own_postgresql
from support.server import SHARED_SECRET, Answer, Served, served


@pytest.fixture
def both(tmp_path, postgresql_server):
    with databases.postgresql_url(postgresql_server) as url:
        for name in "ab":
            tmp_path.joinpath(name).mkdir()
        with (
            served(tmp_path / "a", *SHARED_SECRET, database=url) as first,
            served(tmp_path / "b", *SHARED_SECRET, database=url, login_of=first) as second,
        ):
            yield first, second


def test_a_token_revoked_in_one_process_ends_in_the_other(both):
    first, second = both
    token = first.login().headers["X-Subject-Token"]
    headers = {"X-Auth-Token": token}
    path = f"/v1/{first.project}/stacks"
    assert second.request("GET", path, headers=headers).status == 200

    assert (
        first.request("DELETE", "/identity/v3/auth/tokens", headers={**headers, "X-Subject-Token": token}).status == 204
    )
    first.until(lambda: second.request("GET", path, headers=headers).status == 401)


@pytest.fixture
def line_of_first(tmp_path) -> Iterator[tuple[Served, Served, FaultyLine]]:
    """Two processes, and the line that carries what the first one sends and receives of notifications."""
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    with own_postgresql() as postgresql, faulty_line(postgresql.port) as line:
        direct = ("--database-direct-url", postgresql.url_at(line.port))
        with (
            served(folders[0], *SHARED_SECRET, *direct, database=postgresql.url) as first,
            served(folders[1], *SHARED_SECRET, database=postgresql.url, login_of=first) as second,
        ):
            yield first, second, line


def test_a_held_poll_is_answered_by_a_notification_and_after_a_crash_without_one(line_of_first):
    first, second, line = line_of_first
    agent = spoken_agent(second)
    # The caches are cleared at the start, and once more for processes that were killed before it.
    waiting.until(lambda: read_metric(second, "stoker_cache_clears") == 2)
    answer = agent.document()
    with ThreadPoolExecutor() as executor:
        held = hold_poll(executor, agent, answer)
        deploy(first, agent.id)
        answer = held.result()
        assert len(answer.body["deployments"]) == 1
        assert read_metric(second, "stoker_cache_clears") == 2
        held = hold_poll(executor, agent, answer)
        line.hold()
        deploy(first, agent.id)
        first.kill9()
        assert len(held.result().body["deployments"]) == 2
        assert read_metric(second, "stoker_cache_clears") == 3


def hold_poll(executor: ThreadPoolExecutor, agent: SpokenAgent, before: Answer) -> Future[Answer]:
    """Poll until there is another document than ``before``. Returns when Stoker holds the poll."""

    def poll() -> Answer:
        etag = before.headers["ETag"]
        for _ in waiting.attempts(90):
            if (answer := agent.document(wait=45, etag=etag)).status != 304:
                return answer
        raise AssertionError("unreachable")

    future = executor.submit(poll)
    waiting.until(lambda: read_metric(agent.stoker, "stoker_held_polls") == 1)
    return future


def read_metric(stoker: Served, name: str) -> float:
    """Return the sum of a metric of a process."""
    text = stoker.request("GET", "/metrics", headers={"X-Auth-Token": stoker.token}).raw.decode()
    families = [family for family in text_string_to_metric_families(text) if family.name == name]
    return sum(sample.value for family in families for sample in family.samples)
