"""What is wanted elsewhere, brought there by jobs: the newest wins, nothing is lost, and looking has an end."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from msgspec.structs import replace

from stoker.backends.reconciler import PREPARE, RECONCILE, Reconciler
from stoker.backends.remote_object_controller import RENEW, RemoteObjectController, RemoteObjects
from stoker.backends.result_polling import POLL, Result, ResultPoller
from stoker.failures import ServiceRejected, ServiceUnavailable
from stoker.model.errors import Invalid, Unavailable
from stoker.store import deployments, remote_objects
from stoker.store.remote_objects import OBJECT
from stoker.transports.base import TransportTarget
from support import query
from support.stacks import world
from support.templates import config, deployment, server, template
from support.work import ManualWork

PARTY = TransportTarget(
    resource_id=str(uuid4()), resource_name="r", name="n", stack_id="s", stack_name="s", project_id="p"
)


class Shelf:
    """A place elsewhere, in memory."""

    def __init__(self):
        self.away = self.full = False
        self.refused = set()
        #: It takes so many more.
        self.room = None
        self.there = {}
        self.writes = 0
        self.results = {}
        self.taken_away = []
        self.looks = 0
        self.meanwhile = lambda: None

    def prepare(self):
        self._answer()

    def apply(self, lodging):
        self._answer()
        if self.full or self.room == 0:
            raise ServiceUnavailable("full")
        if self.room:
            self.room -= 1
        if lodging.name in self.refused:
            raise ServiceRejected("no", 403)
        self.writes += 1
        self.there[lodging.name] = lodging.body
        return {}

    def remove(self, lodging):
        self._answer()
        self.there.pop(lodging.name, None)

    def poll(self, lodging, since):
        self._answer()
        self.looks += 1
        return [Result(mark, data) for mark, data in self.results.pop(lodging.resource_id, ())]

    def acknowledge(self, lodging, found):
        self._answer()
        self.taken_away += [each.mark for each in found]

    def _answer(self):
        self.meanwhile()
        if self.away:
            raise ServiceUnavailable("away")


def reconciler(store, work, shelf):
    controller = RemoteObjectController(store, work, OBJECT, shelf)
    return Reconciler(store, work, {OBJECT: controller})


@pytest.fixture
def shelf():
    return Shelf()


@pytest.fixture
def work():
    return ManualWork()


@pytest.fixture
def places(store, work, shelf):
    reconciler(store, work, shelf)
    return RemoteObjects(work)


def put(store, places, body, name="a"):
    store.write(lambda tx: places.put(tx, OBJECT, name, PARTY, body))


def rows(store):
    with store.read() as tx:
        return query.count(tx, "remote_objects")


def test_the_newest_content_wins_and_is_written_once(store, work, shelf, places):
    text = '{"a": "\\u0000 \U0001f40d"}'
    for body in ("0", "1", text):
        put(store, places, body)
    job = work.jobs[0]
    assert work.run(RECONCILE) == 1
    work.handlers[RECONCILE](job[2])
    assert shelf.there == {"a": text}
    assert shelf.writes == 1


def pause(store, work):
    """Seconds until the one job that stands there is due."""
    ((_, _, _, at),) = work.jobs
    with store.read() as tx:
        return round((at - tx.now).total_seconds())


def test_one_job_probes_an_unavailable_service(store, work, shelf, places):
    shelf.away = True
    for name in "abc":
        put(store, places, "1", name)
    store.write(lambda tx: places.close(tx, OBJECT, "c"))
    work.step(RECONCILE)
    pauses = []
    for _ in range(6):
        pauses.append(pause(store, work))
        assert work.step(PREPARE) == 1
    assert pauses == [1, 1, 2, 4, 5, 5]
    shelf.away = False
    work.step(PREPARE)
    work.step(RECONCILE)
    assert (shelf.there, rows(store)) == ({"a": "1", "b": "1"}, 2)
    assert work.jobs == []


def test_pauses_grow_while_every_write_fails(store, work, shelf, places):
    shelf.full = True
    for name in "ab":
        put(store, places, "1", name)
    pauses = []
    for _ in range(8):
        assert work.step(RECONCILE) == 2
        pauses.append(pause(store, work))
        work.step(PREPARE)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    shelf.full = False
    work.step(RECONCILE)
    assert shelf.there == {"a": "1", "b": "1"}
    assert work.jobs == []


def test_pauses_do_not_grow_while_some_writes_succeed(store, work, shelf, places):
    for name in "abcdef":
        put(store, places, "1", name)
    pauses = []
    for _ in range(5):
        shelf.room = 1
        work.step(RECONCILE)
        pauses.append(pause(store, work))
        work.step(PREPARE)
    assert pauses == [1, 2, 1, 1, 1], "how many there were at first nobody counted"
    shelf.room = None
    work.step(RECONCILE)
    assert sorted(shelf.there) == list("abcdef")


def test_an_agents_url_is_signed_again_before_it_expires(store, work, shelf, places):
    store.write(lambda tx: places.open(tx, OBJECT, "a", PARTY, signed_method="POST"))
    work.step(RECONCILE)
    for writes in (1, 2, 3):
        assert (shelf.writes, work.kinds()) == (writes, [RENEW])
        reconciler(store, work, shelf).start()
        work.run(PREPARE)
        work.run(RECONCILE)
        assert (shelf.writes, work.kinds()) == (writes, [RENEW]), "nothing but its time makes it anew"
        work.step(RENEW)
        work.step(RECONCILE)
    store.write(lambda tx: places.close(tx, OBJECT, "a"))
    work.run(RECONCILE)
    work.step(RENEW)
    assert work.jobs == []


def test_a_refused_write_is_retried_alone_and_delays_no_other(store, work, shelf, places):
    shelf.refused = {"a"}
    for name in "ab":
        put(store, places, "1", name)
    pauses = []
    for _ in range(8):
        work.step(RECONCILE)
        pauses.append(pause(store, work))
    assert shelf.there == {"b": "1"}
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    shelf.refused = set()
    work.step(RECONCILE)
    assert shelf.there == {"a": "1", "b": "1"}


def test_pending_writes_of_an_ended_process_are_made_by_the_next_one(store, work, shelf, places):
    put(store, places, "1")
    work.jobs.clear()
    reconciler(store, work, shelf).start()
    work.run(PREPARE)
    work.run(RECONCILE)
    assert shelf.there == {"a": "1"}


def test_an_object_that_others_write_is_not_written(store, work, shelf, places):
    store.write(lambda tx: places.open(tx, OBJECT, "a", PARTY))
    reconciler(store, work, shelf).start()
    work.run(PREPARE)
    assert work.jobs == []


@pytest.mark.parametrize("meanwhile", ["write", "removal"])
def test_a_change_during_a_write_or_a_removal_is_written_too(store, work, shelf, places, meanwhile):
    put(store, places, "1")
    if meanwhile == "removal":
        work.run(RECONCILE)
        store.write(lambda tx: places.close(tx, OBJECT, "a"))

    def change():
        shelf.meanwhile = lambda: None
        put(store, places, "2")

    shelf.meanwhile = change
    work.run(RECONCILE)
    assert (shelf.there, rows(store)) == ({"a": "2"}, 1)


def test_a_closed_object_is_removed_with_its_record(store, work, shelf, places):
    put(store, places, "1")
    work.run(RECONCILE)
    for _ in range(2):
        store.write(lambda tx: places.close(tx, OBJECT, "a"))
    assert work.run(RECONCILE) == 1
    assert (shelf.there, rows(store)) == ({}, 0)


def test_reopening_an_object_keeps_its_pending_content(store, work, shelf, places):
    put(store, places, "1")
    store.write(lambda tx: places.open(tx, OBJECT, "a", PARTY, apply=True))
    work.run(RECONCILE)
    assert shelf.there == {"a": "1"}


@pytest.fixture
def waiting(store, work, shelf):
    """A deployment whose result comes elsewhere: its id's lodging, the world, and what was heard."""
    here = world(store)
    made = template({"server": server(), "config": config(), "d": deployment()})
    stack = here.create(made)
    resource = here.resources(stack)["d"]
    places, target = RemoteObjects(work), replace(PARTY, resource_id=resource.id, stack_id=stack.id)
    store.write(lambda tx: places.open(tx, OBJECT, "d", target))
    store.write(lambda tx: places.listen(tx, OBJECT, "d"))
    return here, stack, resource


def pass_time(store):
    """Whatever is to be looked at later is due now."""
    store.write(lambda tx: query.change(tx, "UPDATE remote_objects SET poll_at = 1 WHERE poll_at IS NOT NULL"))


def pause_of(store):
    with store.read() as tx:
        found = query.scalar(tx, "SELECT id FROM remote_objects")
        return remote_objects.find(tx, found)


def look(store, work):
    (args,) = {job[1]: job[2] for job in work.jobs if job[0] == POLL}.values()
    pass_time(store)
    work.handlers[POLL](args)


def test_polling_slows_down_and_ends_with_the_run(store, work, shelf, waiting):
    here, stack, _ = waiting
    ResultPoller(store, work, {OBJECT: shelf}, lambda tx, id, data: None)
    pauses = []
    for _ in range(20):
        look(store, work)
        pauses.append(pause_of(store).poll_interval)
    assert pauses == sorted(pauses)
    assert pauses[0] < timedelta(seconds=1)
    assert pauses[-1] == timedelta(seconds=30)
    here.signal(stack, "d")
    looks = shelf.looks
    look(store, work)
    assert shelf.looks == looks, "nobody waits any more"
    assert pause_of(store).poll_at is None
    assert work.jobs == []


def test_results_are_read_in_order_and_an_invalid_one_stops_no_other(store, work, shelf, waiting):
    _, _, resource = waiting
    heard = []

    def hear(tx, id, data):
        if data == b"no":
            raise Invalid("no result")
        heard.append((id, data))

    ResultPoller(store, work, {OBJECT: shelf}, hear)
    shelf.results[resource.id] = [("1", b"a"), ("2", b"no"), ("3", b"b")]
    look(store, work)
    assert heard == [("d", b"a"), ("d", b"b")]
    assert pause_of(store).last_result == "3"


@pytest.mark.parametrize("error", [KeyError("messages"), ServiceUnavailable("away"), None])
def test_a_failed_poll_and_a_result_that_fails_in_an_unexpected_way_stop_no_other(store, work, shelf, waiting, error):
    _, _, resource = waiting
    applied, marks = [], iter("123")

    def apply(_tx, _id, data):
        if data == b"no":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        applied.append(data)

    def answer():
        if error is not None:
            raise error

    ResultPoller(store, work, {OBJECT: shelf}, apply)
    shelf.meanwhile = answer
    shelf.results[resource.id] = [(next(marks), b"no"), (next(marks), b"a")]
    look(store, work)
    assert work.kinds() == [POLL], "the next poll is due"
    shelf.meanwhile = lambda: None
    look(store, work)
    assert applied == [b"a"]


def test_a_result_that_the_database_refused_is_read_again(store, work, shelf, waiting):
    _, _, resource = waiting
    heard, lost = [], [True]

    def hear(_tx, _id, data):
        if lost:
            raise Unavailable("the connection is lost")
        heard.append(data)

    ResultPoller(store, work, {OBJECT: shelf}, hear)
    shelf.results[resource.id] = [("1", b"a")]
    with pytest.raises(Unavailable):
        look(store, work)
    assert (shelf.taken_away, pause_of(store).last_result) == ([], None)
    lost.clear()
    shelf.results[resource.id] = [("1", b"a")]
    look(store, work)
    assert (heard, shelf.taken_away) == ([b"a"], ["1"])


def test_all_polls_share_one_job(store, work, shelf, waiting):
    ResultPoller(store, work, {OBJECT: shelf}, lambda tx, id, data: None)
    for _ in range(5):
        store.write(lambda tx: RemoteObjects(work).listen(tx, OBJECT, "d"))
    assert work.kinds() == [POLL] * 6
    look(store, work)
    assert work.kinds() == [POLL]


def test_a_run_that_is_being_cancelled_still_reads_its_result(store, work, shelf, waiting):
    """Results older than ``since`` count as those of an earlier run, and are dropped."""
    _, _, resource = waiting
    with store.read() as tx:
        began = deployments.find(tx, resource.physical_id).created_at

    def change(tx):
        found = deployments.find(tx, resource.physical_id)
        later = replace(found, cancelling=True, updated_at=tx.now + timedelta(minutes=5))
        deployments.save(tx, later)

    store.write(change)
    pass_time(store)
    with store.read() as tx:
        assert [each.since for each in remote_objects.due_polls(tx, OBJECT, 9)] == [began]
