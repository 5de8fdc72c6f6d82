"""A Swift or a Zaqar that is away while deployments come and go: what was acknowledged reaches it when it is back."""

from __future__ import annotations

import json

import pytest

from support.backends import (
    RESULT,
    QueueAgent,
    ask,
    created,
    greeting,
    outputs,
    popped,
    reporter,
    status,
    swift_flags,
    until_document,
    zaqar_flags,
)
from support.server import served


@pytest.fixture
def away():
    """Peers that a test has stopped run again for the next."""
    stopped = []

    def stop(peer):
        peer.stop()
        stopped.append(peer)

    yield stop
    for peer in stopped:
        if not peer.processes:
            peer.start()


def test_documents_reach_swift_after_an_outage(tmp_path, database_url, swift, away):
    with served(tmp_path, *swift_flags(swift, tmp_path), database=database_url) as stoker:
        away(swift)
        stacks = [created(stoker, f"s{n}", greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL")) for n in range(3)]
        gone = created(stoker, "gone", greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL"))
        url = outputs(stoker, gone)["agent"]["request"]["metadata_url"]
        assert stoker.heat("DELETE", gone).status == 204
        changed = greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL", "moon")
        assert stoker.heat("PUT", stacks[0], {"template": changed}).status == 202
        stoker.kill9()
        stoker.restart()
        swift.start()
        for stack, who in zip(stacks, ("moon", "world", "world"), strict=True):
            document = outputs(stoker, stack)["agent"]["request"]["metadata_url"]
            (run,) = until_document(stoker, document, who)
            assert ask("PUT", run["deploy_signal_id"], {**RESULT, "said": who}).status == 201
        for stack in stacks:
            stoker.until(lambda stack=stack: status(stoker, stack).endswith("_COMPLETE"), 60)
        assert outputs(stoker, stacks[0])["d0"] == "moon"
        stoker.until(lambda: ask("GET", url).status == 404, 60)


def test_a_result_that_arrived_while_stoker_was_down_is_read(tmp_path, database_url, swift):
    with served(tmp_path, *swift_flags(swift, tmp_path), database=database_url) as stoker:
        stack = created(stoker, "late", greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL"))
        (run,) = until_document(stoker, outputs(stoker, stack)["agent"]["request"]["metadata_url"], "world")
        stoker.kill9()
        assert ask("PUT", run["deploy_signal_id"], {**RESULT, "said": "late"}).status == 201
        stoker.restart()
        stoker.until(lambda: status(stoker, stack) == "CREATE_COMPLETE", 60)
        assert outputs(stoker, stack)["d0"] == "late"


def test_documents_reach_zaqar_after_an_outage(tmp_path, database_url, zaqar, away):
    with served(tmp_path, *zaqar_flags(zaqar), database=database_url) as stoker:
        away(zaqar)
        stacks = [created(stoker, f"s{n}", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL")) for n in range(3)]
        changed = greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL", "moon")
        assert stoker.heat("PUT", stacks[0], {"template": changed}).status == 202
        stoker.kill9()
        stoker.restart()
        zaqar.start()
        for stack, who in zip(stacks, ("moon", "world", "world"), strict=True):
            agent = QueueAgent(outputs(stoker, stack)["agent"]["zaqar"])
            (run,) = popped(stoker, agent, who)
            assert agent.pop(agent.said["queue_id"]) == [], "only the newest document is there"
            assert reporter(run).post(run["deploy_queue_id"], json.dumps({**RESULT, "said": who})) == 201
        for stack in stacks:
            stoker.until(lambda stack=stack: status(stoker, stack).endswith("_COMPLETE"), 60)
        assert outputs(stoker, stacks[0])["d0"] == "moon"


def test_a_message_is_read_although_an_answer_was_lost(tmp_path, database_url, zaqar):
    with served(tmp_path, *zaqar_flags(zaqar), database=database_url) as stoker:
        stack = created(stoker, "lost", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL"))
        agent = QueueAgent(outputs(stoker, stack)["agent"]["zaqar"])
        (run,) = popped(stoker, agent, "world")
        reporting = reporter(run)
        url, headers = reporting.login
        stoker.kill9()
        message = {"messages": [{"body": {**RESULT, "said": "heard"}}]}
        assert ask("POST", f"{url}/v2/queues/{run['deploy_queue_id']}/messages", message, headers).status == 201
        stoker.restart()
        stoker.until(lambda: status(stoker, stack) == "CREATE_COMPLETE", 60)
        assert outputs(stoker, stack)["d0"] == "heard"
