"""A Swift or a Zaqar that is away while deployments come and go: what was acknowledged reaches it when it is back."""

from __future__ import annotations

import pytest

from support.backends import RESULT, greeting
from support.server import served


@pytest.fixture
def channel_away(channel):
    """A channel whose service is stopped, and runs again for the next test."""
    channel.peer.stop()
    yield channel
    if not channel.peer.processes:
        channel.peer.start()


def test_documents_reach_the_service_after_an_outage(tmp_path, database_url, channel_away):
    channel = channel_away
    with served(tmp_path, *channel.flags(channel.peer, tmp_path), database=database_url) as stoker:
        stacks = [stoker.create_stack(f"s{n}", greeting(*channel.transports)) for n in range(3)]
        gone = stoker.create_stack("gone", greeting(*channel.transports))
        agent = stoker.outputs(gone)["agent"]
        assert stoker.heat("DELETE", gone).status == 204
        assert stoker.heat("PUT", stacks[0], {"template": greeting(*channel.transports, "moon")}).status == 202
        stoker.kill9()
        stoker.restart()
        channel.peer.start()
        for stack, who in zip(stacks, ("moon", "world", "world"), strict=True):
            run = channel.await_run(stoker, stack, who)
            channel.open_report(stoker, run)({**RESULT, "said": who})
        for stack in stacks:
            stoker.until(lambda stack=stack: stoker.stack(stack)["stack_status"].endswith("_COMPLETE"), 60)
        assert stoker.outputs(stacks[0])["d0"] == "moon"
        stoker.until(lambda: channel.is_gone(stoker, agent), 60)


def test_a_result_that_arrived_while_stoker_was_down_is_read(tmp_path, database_url, channel):
    with served(tmp_path, *channel.flags(channel.peer, tmp_path), database=database_url) as stoker:
        stack = stoker.create_stack("late", greeting(*channel.transports))
        report = channel.open_report(stoker, channel.await_run(stoker, stack))
        stoker.kill9()
        report({**RESULT, "said": "late"})
        stoker.restart()
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
        assert stoker.outputs(stack)["d0"] == "late"
