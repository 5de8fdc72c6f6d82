"""Many who report, cancel and retry at the same time: every count stays exact, and nothing runs twice."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.deployments import service
from stoker.deployments.run_end import DEADLINE
from stoker.model.errors import EntityNotFound, StokerError
from stoker.store.open import Store
from support.fleet import Fleet
from support.search import examples
from support.stacks import world

pytestmark = pytest.mark.slow


@settings(max_examples=examples(10))
@given(data=st.data())
def test_counts_are_exact_in_any_order_of_events(fleet, data):
    fleet.world.work.jobs.clear()  # of an example before that ended early
    count = data.draw(st.integers(1, 12))
    trigger = fleet.trigger_over(
        count,
        max_concurrent=data.draw(st.none() | st.integers(1, 4)),
        max_fail_percentage=data.draw(st.sampled_from([0, 25, 100])),
        canary=data.draw(st.sampled_from([None, None, 1, "50%"])),
        timeout=60,
    )
    deeds = ["end", "fail", "deliver", "cancel one", "retry", "delete", "cancel", "force", "late"]
    for _ in range(data.draw(st.integers(0, 25))):
        deed = data.draw(st.sampled_from(deeds))
        known = [fleet.deployment(each) for each in fleet.targets(trigger) if each.deployment_id]
        at = data.draw(st.integers(0, 11))
        one = known[at % len(known)] if known else None
        try:
            if deed in ("cancel", "force"):
                fleet.cancel(trigger, force=deed == "force")
            elif one is not None:
                act(fleet, deed, one)
        except StokerError:
            pass  # not now: that, too, must leave everything right
        fleet.exact(trigger)
        limit = trigger.options.max_concurrent
        assert deed == "retry" or limit is None or len(fleet.running(trigger)) <= max(limit, count)
    while running := fleet.running(trigger):
        fleet.end(running[0])
    fleet.exact(trigger)
    assert fleet.now(trigger).status != "IN_PROGRESS"
    assert DEADLINE not in fleet.world.work.kinds()
    fleet.delete(trigger)


def act(fleet, deed, one):
    if deed in ("end", "fail", "late"):
        fleet.end(one, 1 if deed == "fail" else 0)
    elif deed == "deliver":
        fleet.deliver(one)
    elif deed == "retry":
        fleet.retry(one)
    else:
        fleet.do(
            service.remove if deed == "delete" else service.cancel,
            one,
            *(() if deed == "delete" else ("bob",)),
        )


class Agents:
    """Six threads of two processes' worth: what stands in the documents of their servers is run and reported."""

    def __init__(self, fleets, servers):
        self.fleets, self.servers = fleets, servers
        self.ran: Counter[tuple[str, str]] = Counter()
        self.errors: list[Exception] = []
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._serve, args=(at,)) for at in range(6)]

    def __enter__(self):
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for each in self._threads:
            each.join()

    def until(self, true):
        while not self.errors and not true():
            self._stop.wait(0.05)

    def _serve(self, at):
        fleet, choose = self.fleets[at % len(self.fleets)], random.Random(at)
        try:
            while not self._stop.is_set():
                for server in self.servers[at :: len(self._threads)]:
                    for deployment, _ in fleet.world.pending(server.id):
                        self._run(fleet, deployment, choose)
        except Exception as error:
            self.errors.append(error)

    def _run(self, fleet, deployment, choose):
        with self._lock:
            self.ran[deployment.server_id, deployment.config_id] += 1
        with contextlib.suppress(EntityNotFound):  # withdrawn meanwhile
            fleet.end(deployment, 1 if choose.random() < 0.2 else 0)


@pytest.mark.parametrize("cancelled", [False, True])
def test_many_agents_of_two_processes_report_concurrently(fleet, database_url, cancelled):
    """Each process with a store and an engine of its own; on SQLite there is one."""
    servers = fleet.servers(120)
    with contextlib.ExitStack() as left:
        fleets = [fleet]
        if database_url.startswith("postgresql"):
            fleets.append(Fleet(world(left.enter_context(contextlib.closing(Store(database_url))))))
        config, ids = fleet.config(), [each.id for each in servers]
        triggers = [fleet.trigger(config_id=config, servers=ids, max_concurrent=7) for _ in range(2)]
        with Agents(fleets, servers) as agents:
            if cancelled:
                agents.until(lambda: fleet.now(triggers[0]).complete >= 20)
                fleet.cancel(triggers[0])
            agents.until(lambda: all(fleet.now(each).status != "IN_PROGRESS" for each in triggers))
    assert agents.errors == []
    assert set(agents.ran.values()) == {1}
    counted = [fleet.exact(each) for each in triggers]
    assert all(each["complete"] and each["failed"] for each in counted)
    assert counted[1]["complete"] + counted[1]["failed"] == 120
    if cancelled:
        assert fleet.now(triggers[0]).status == "CANCELLED"
        assert counted[0]["cancelled"] > 0
    else:
        assert len(agents.ran) == 240
