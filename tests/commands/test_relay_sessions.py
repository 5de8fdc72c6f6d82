"""Shared polls of a relay: what each request of a session has, through lost answers and restarts of Stoker."""

from __future__ import annotations

import asyncio
import json

from stoker_relay.agent_polls import AgentPolls
from stoker_relay.centre import Answer, CentreAway
from stoker_relay.metrics import Metrics
from stoker_relay.shared_polls import Batch, Batches

LOST = CentreAway("lost")


class Keys:
    """Known keys in memory."""

    def __init__(self):
        self.digests = set()

    def has(self, digest):
        return digest in self.digests

    def add(self, digest):
        self.digests.add(digest)

    def remove(self, digest):
        self.digests.discard(digest)


class ScriptedCentre:
    """A central Stoker whose answers the test gives."""

    is_reachable = True

    def __init__(self):
        self.requests = asyncio.Queue()

    def open_polls(self):
        return self

    async def close(self):
        pass

    async def poll(self, body, wait):
        answer = asyncio.get_running_loop().create_future()
        self.requests.put_nowait((json.loads(body), answer))
        result = await answer
        if isinstance(result, Exception):
            raise result
        return Answer(200, {}, json.dumps(result).encode())

    async def next(self):
        """Return the session's next request and the future of its answer."""
        async with asyncio.timeout(60):
            return await self.requests.get()


def document(number, revision):
    return {"number": number, "status": 200, "etag": f'"{revision}"', "document": {"revision": revision}}


def shown(request):
    return request["full"], {each["key"]: each["etag"] for each in request["agents"]}, request["removed"]


def test_requests_have_changes_and_a_failure_sends_all_members():
    async def journey():
        centre, metrics, keys = ScriptedCentre(), Metrics(), Keys()
        batches = Batches(lambda: Batch(centre, keys, metrics), 500)
        polls = AgentPolls(centre, keys, batches)

        def start(key, etag=None):
            return asyncio.ensure_future(polls.poll(key, etag, "1; hooks=script", 60))

        one, two = start("a"), start("b")
        first, answer = await centre.next()
        assert shown(first) == (True, {"a": None, "b": None}, [])
        numbers = {each["key"]: each["number"] for each in first["agents"]}
        answer.set_result({"agents": [document(numbers["a"], 1), document(numbers["b"], 1)]})
        assert (await one).headers["etag"] == (await two).headers["etag"] == '"1"'
        # Nothing has to be sent again; the receipts follow.
        second, answer = await centre.next()
        assert shown(second) == (False, {}, [])
        one, two = start("a", '"1"'), start("b", '"1"')
        third, held = await centre.next()
        assert shown(third) == (False, {"a": '"1"', "b": '"1"'}, [])
        answer.set_result({"agents": []})  # the later request has ended the earlier one
        # A member joins, and one leaves.
        polls.forget("b")
        three = start("c")
        fourth, answer = await centre.next()
        held.set_result({"agents": []})
        assert shown(fourth) == (False, {"c": None}, [numbers["b"]])
        assert [each["number"] for each in (first, second, third, fourth)] == [1, 2, 3, 4]
        # The answer is lost: the next request has all members.
        answer.set_result(LOST)
        fifth, answer = await centre.next()
        assert shown(fifth) == (True, {"a": '"1"', "c": None}, [])
        answer.set_result({"agents": []})
        # Another process of Stoker answers, which does not know the session: the request is repeated.
        sixth, answer = await centre.next()
        answer.set_result({"agents": [], "unknown": True})
        repeated, answer = await centre.next()
        assert repeated == sixth
        assert shown(sixth) == (False, {}, [])
        # No process knows the session, because its process has restarted.
        while not repeated["full"]:
            answer.set_result({"agents": [], "unknown": True})
            repeated, answer = await centre.next()
        assert shown(repeated) == (True, {"a": '"1"', "c": None}, [])
        # A refused key ends the member's place in the session.
        refused = {"number": numbers["a"], "status": 401, "error": {"code": 401}}
        answer.set_result({"agents": [refused]})
        assert (await one).status == 401
        seventh, answer = await centre.next()
        assert shown(seventh) == (False, {}, [])
        answer.cancel()
        for task in (two, three):
            task.cancel()
        await batches.close()

    asyncio.run(journey())
