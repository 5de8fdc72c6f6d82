"""Triggers by the clock: when they come, what is missed, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from stoker.deployments import runs as deployment_runs
from stoker.deployments.configs import delete_config
from stoker.http.stoker.schedules import serialize
from stoker.json_values import convert
from stoker.model.audit import Outcome
from stoker.model.errors import Conflict, EntityNotFound, Invalid, ResourceInUse, Unavailable
from stoker.model.trigger import TriggerStatus
from stoker.store import audit, deployments, rows, servers, triggers
from stoker.triggers import creation
from stoker.triggers import schedules as trigger_schedules
from stoker.triggers.lifecycle import GO_ON
from stoker.triggers.request import ScheduleRequest
from stoker.triggers.schedules import KEPT, RUN, TIDY
from support.clock import Clock as FixedClock
from support.fleet import COMPONENT
from support.templates import define, on, template

VIENNA = "Europe/Vienna"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock(fleet, monkeypatch):
    return Clock(fleet, monkeypatch)


class Clock(FixedClock):
    """Schedules of one server, and their times."""

    def __init__(self, fleet, monkeypatch):
        super().__init__(NOON, monkeypatch)
        self.fleet, self.engine, self.store = fleet, fleet.world.engine, fleet.world.store
        self.write = self.store.write
        self.server = fleet.servers(1)[0]
        self.trigger = {"config_id": fleet.config(), "servers": [self.server.id], "action": "NIGHTLY"}

    def create(self, **said):
        return self.fleet.schedule(**{"name": "nightly", "trigger": self.trigger, "cron": "0 2 * * *", **said})

    def change(self, schedule, **said):
        asked = convert(said, ScheduleRequest, "the schedule")

        def do(tx):
            stored = triggers.get_schedule(tx, schedule.id, "p", for_update=True)
            return trigger_schedules.change(tx, self.engine, stored, asked)

        return self.write(do)

    def delete(self, schedule):
        self.write(
            lambda tx: trigger_schedules.delete(
                tx, self.engine, triggers.get_schedule(tx, schedule.id, "p", for_update=True)
            )
        )

    def read(self, schedule):
        return self.fleet.world.read(triggers.get_schedule, schedule.id, "p")

    def start(self, schedule, ago=timedelta(seconds=1)):
        """Its next time was so long ago, and its job is about to be done, some seconds after the one before."""
        self.moment += timedelta(seconds=5)
        at = self.moment - ago
        self.write(
            lambda tx: triggers.save_schedule(
                tx, trigger_schedules.replace(triggers.get_schedule(tx, schedule.id, "p"), next_at=at)
            )
        )
        trigger_schedules.run(self.store, self.engine, {"schedule_id": schedule.id, "at": rows.to_micros(at)})
        return self.read(schedule)

    def jobs(self):
        return [job for job in self.fleet.world.work.jobs if job[0] == RUN]

    def begun(self):
        return self.fleet.world.read(triggers.page, "p")


def test_a_schedule_starts_its_trigger_once_and_sets_the_next_time(clock):
    made = clock.create(timezone=VIENNA)
    assert made.next_at == datetime(2026, 5, 2, 0, tzinfo=UTC)
    ((_, key, args, at),) = clock.jobs()
    assert (key, at) == (made.id, made.next_at)
    assert args == {"schedule_id": made.id, "at": rows.to_micros(made.next_at)}

    clock.until(clock.fleet.world.work, "2026-05-02 00:00")
    (trigger,) = clock.begun()
    assert (trigger.schedule_id, trigger.requested_by, trigger.action) == (made.id, "ann", "NIGHTLY")
    done = clock.read(made)
    assert (done.run_count, done.missed_count, done.last_trigger_id, done.last_error) == (1, 0, trigger.id, None)
    assert [job[3] for job in clock.jobs()] == [done.next_at] == [datetime(2026, 5, 3, 0, tzinfo=UTC)]

    trigger_schedules.run(clock.store, clock.engine, args)  # the job is repeated
    assert (clock.read(made), len(clock.begun())) == (done, 1)


def test_a_database_with_a_clock_ahead_starts_nothing_twice(clock):
    made = clock.start(clock.create(), -timedelta(hours=30))
    assert made.next_at > made.last_at > clock.moment
    assert made.run_count == 1


@pytest.mark.parametrize(
    ("minute", "misfire_policy", "missed", "begun"), [(30, "RUN", 5, 1), (30, "SKIP", 5, 0), (0, "SKIP", 4, 1)]
)
def test_missed_times_are_counted_and_follow_the_misfire_policy(clock, minute, misfire_policy, missed, begun):
    """A time of this very minute is not late."""
    made = clock.create(cron="0 * * * *", misfire_policy=misfire_policy)
    clock.moment += timedelta(minutes=minute)
    done = clock.start(made, timedelta(hours=4, minutes=minute, seconds=5))
    assert (done.missed_count, done.run_count, len(clock.begun())) == (missed, begun, begun)


def statuses(clock):
    """The status of each trigger, and of its targets, oldest first."""
    return [
        (str(each.status), *(str(target.status) for target in clock.fleet.targets(each)))
        for each in reversed(clock.begun())
    ]


def test_a_time_replaces_runs_of_earlier_times_that_have_not_started(clock):
    running, waiting = clock.fleet.servers(2)
    made = clock.create(trigger={**clock.trigger, "servers": [running.id, waiting.id]})
    made = clock.start(made)
    (first,) = clock.begun()
    busy, _ = clock.fleet.running(first)
    clock.write(lambda tx: deployment_runs.heartbeat(tx, server_id=running.id, config_id=busy.config_id))
    made = clock.start(made)
    assert statuses(clock) == [
        ("IN_PROGRESS", "IN_PROGRESS", "CANCELLED"),
        ("IN_PROGRESS", "IN_PROGRESS", "IN_PROGRESS"),
    ]
    clock.start(made)
    assert statuses(clock) == [
        ("IN_PROGRESS", "IN_PROGRESS", "CANCELLED"),
        ("CANCELLED", "CANCELLED", "CANCELLED"),
        ("IN_PROGRESS", "IN_PROGRESS", "IN_PROGRESS"),
    ]
    reason = clock.fleet.targets(clock.begun()[1])[0].status_reason
    assert reason.startswith("Replaced by the run of a later time of its schedule")
    assert len(clock.fleet.world.to_run(waiting.id)) == 1
    clock.fleet.end(busy)
    assert statuses(clock)[0] == ("CANCELLED", "COMPLETE", "CANCELLED")


def test_a_run_that_an_agent_may_have_begun_is_not_replaced_unless_it_waits_for_another_run(clock):
    (server,) = clock.fleet.servers(1, last_seen=NOON)
    made = clock.create(trigger={**clock.trigger, "servers": [server.id]})
    for _ in range(2):
        made = clock.start(made)
    assert statuses(clock) == [("IN_PROGRESS", "IN_PROGRESS")] * 2
    (begun,) = clock.fleet.running(clock.begun()[1])
    clock.write(lambda tx: deployment_runs.heartbeat(tx, server_id=server.id, config_id=begun.config_id))
    clock.start(made)
    assert [run.cancelling for trigger in clock.begun() for run in clock.fleet.running(trigger)] == [False, True, False]


def test_the_end_of_a_replaced_run_starts_no_other_beside_the_one_that_its_server_runs(clock):
    runs = {name: on(clock.server.id, "app", input_values={"target": name}) for name in "abc"}
    clock.fleet.world.complete(clock.fleet.world.create(template({"app": COMPONENT, **runs}), "shop"))
    made = clock.start(clock.create(trigger={"stack": "shop", "resource": "app", "action": "BACKUP"}))
    (earlier,) = clock.begun()
    (first,) = clock.fleet.running(earlier)
    clock.write(lambda tx: deployment_runs.heartbeat(tx, server_id=clock.server.id, config_id=first.config_id))
    clock.start(clock.change(made, trigger={"stack": "shop", "resource": "b", "action": "BACKUP"}))
    assert [target.status for target in clock.fleet.targets(earlier)] == ["IN_PROGRESS", "CANCELLED", "QUEUED"]
    clock.fleet.end(first)
    assert [target.status for target in clock.fleet.targets(earlier)] == ["COMPLETE", "CANCELLED", "IN_PROGRESS"]


def test_runs_of_other_servers_and_schedules_are_not_replaced(clock):
    first, second = clock.fleet.servers(2)
    made = clock.start(clock.create(trigger={**clock.trigger, "servers": [first.id]}))
    clock.start(clock.create(name="other", trigger={**clock.trigger, "servers": [first.id]}))
    changed = clock.change(made, trigger={**clock.trigger, "servers": [second.id]})
    clock.start(changed)
    assert statuses(clock) == [("IN_PROGRESS", "IN_PROGRESS")] * 3


def test_the_queues_of_earlier_times_are_replaced_in_several_transactions(clock, monkeypatch):
    monkeypatch.setattr("stoker.triggers.lifecycle.SHARE", 2)
    servers = [server.id for server in clock.fleet.servers(5)]
    made = clock.create(trigger={**clock.trigger, "servers": servers, "max_concurrent": 1})
    made = clock.start(made)
    clock.start(made)
    assert statuses(clock)[0] == ("IN_PROGRESS", "IN_PROGRESS", "QUEUED", "QUEUED", "CANCELLED", "CANCELLED")
    clock.fleet.world.work.run(GO_ON)
    assert statuses(clock) == [
        ("CANCELLED", *["CANCELLED"] * 5),
        ("IN_PROGRESS", "IN_PROGRESS", *["QUEUED"] * 4),
    ]


def test_the_retry_of_a_trigger_runs_that_was_cancelled_while_a_later_time_replaced_it(clock, monkeypatch):
    monkeypatch.setattr("stoker.triggers.lifecycle.SHARE", 2)
    servers = [server.id for server in clock.fleet.servers(5)]
    made = clock.create(trigger={**clock.trigger, "servers": servers, "max_concurrent": 1})
    for _ in range(2):
        made = clock.start(made)
    newer, replaced = clock.begun()
    assert clock.fleet.cancel(replaced).status == "CANCELLED"
    retried = clock.fleet.again(replaced, only_failed=False)
    assert [target.status for target in clock.fleet.targets(retried)] == ["IN_PROGRESS", *["QUEUED"] * 4]
    assert clock.fleet.now(newer).status == "IN_PROGRESS"


def test_all_times_run_if_the_schedule_queues_them(clock):
    made = clock.create(overlap_policy="QUEUE")
    for _ in range(3):
        made = clock.start(made)
    assert statuses(clock) == [("IN_PROGRESS", "IN_PROGRESS")] * 3
    changed = clock.change(made, overlap_policy="REPLACE")
    clock.start(changed)
    assert statuses(clock) == [("CANCELLED", "CANCELLED")] * 3 + [("IN_PROGRESS", "IN_PROGRESS")]


def test_a_schedule_may_have_a_single_time(clock):
    at = NOON + timedelta(hours=1)
    made = clock.create(cron=None, at=at.isoformat())
    assert made.next_at == made.at == at
    done = clock.start(made)
    assert (done.next_at, done.run_count) == (None, 1)
    assert clock.jobs() == []
    late = clock.start(clock.create(name="late", cron=None, at=at.isoformat()), timedelta(hours=2))
    assert (late.run_count, late.missed_count) == (1, 1)


def test_a_refused_trigger_is_reported_and_the_schedule_continues(clock):
    made = clock.create()
    clock.write(lambda tx: servers.delete(tx, clock.server.id))
    told = clock.start(made)
    assert clock.server.id in told.last_error
    assert told.next_at is not None
    (failed,) = clock.begun()
    assert (told.run_count, told.last_trigger_id) == (0, failed.id)
    assert (failed.status, failed.status_reason, failed.total) == ("FAILED", told.last_error, 0)
    assert (failed.name, failed.action, failed.schedule_id) == ("nightly", "NIGHTLY", made.id)
    assert failed.source == {"config_id": clock.trigger["config_id"]}
    with pytest.raises(Conflict, match="could not start"):
        clock.write(lambda tx: creation.retry(tx, clock.engine, failed, only_failed=False, requested_by="ann"))
    clock.write(lambda tx: servers.add(tx, clock.server))
    again = clock.start(told)
    assert (again.run_count, again.last_error) == (1, None)


def test_a_scheduled_config_cannot_be_deleted(clock):
    id = clock.trigger["config_id"]
    made = clock.create()
    with pytest.raises(ResourceInUse, match="nightly"):
        clock.write(lambda tx: delete_config(tx, id, "p"))
    other = clock.fleet.config()
    clock.change(made, trigger={**clock.trigger, "config_id": other})
    clock.write(lambda tx: delete_config(tx, id, "p"))
    clock.delete(made)
    clock.write(lambda tx: delete_config(tx, other, "p"))


def test_a_schedule_that_could_not_start_adds_a_stack_event(clock):
    world = clock.fleet.world
    source = define("OS::Heat::SoftwareConfig", group="script", config="true")
    stack = world.create(template({"patch": source}), "shop")
    made = clock.create(trigger={"stack": "shop", "resource": "patch", "servers": [clock.server.id]})
    clock.write(lambda tx: servers.delete(tx, clock.server.id))
    failure = clock.start(made).last_error
    reasons = [event.reason for event in world.stored_events(stack) if event.resource_name == "patch"]
    assert f"Signal: Schedule nightly could not start: {failure}" in reasons
    assert clock.begun()[0].stack_id == stack.id


def test_a_refusal_is_audited(clock):
    made = clock.create()
    clock.write(lambda tx: servers.change(tx, clock.server.id, policy={"groups": ["puppet"]}))
    told = clock.start(made)
    assert "runs no configs of the group script" in told.last_error
    (kept,) = clock.fleet.world.read(audit.list_all, "p")
    assert (kept.decision.outcome, kept.decision.actor) == (Outcome.REFUSED, "ann")


def test_a_lost_database_loses_no_scheduled_time(clock, monkeypatch):
    at = NOON + timedelta(hours=1)
    made = clock.create(cron=None, at=at.isoformat())

    def away(*_args, **_said):
        raise Unavailable("cannot write to the database: it is away")

    with monkeypatch.context() as broken:
        broken.setattr("stoker.triggers.creation.create", away)
        with pytest.raises(Unavailable):
            clock.start(made)
    kept = clock.read(made)
    assert (kept.last_error, kept.last_at, clock.begun()) == (None, None, [])
    assert clock.start(made).run_count == 1


def test_require_window_needs_servers_with_windows(clock):
    policy = {"maintenance_windows": [{"cron": "0 14 * * *", "minutes": 10}]}
    with pytest.raises(Invalid, match="no maintenance window"):
        clock.create(require_window=True)
    plain = clock.create(name="plain")
    with pytest.raises(Invalid, match="no maintenance window"):
        clock.change(plain, require_window=True)
    clock.write(lambda tx: servers.change(tx, clock.server.id, policy=policy))
    assert clock.change(plain, require_window=True).require_window
    made = clock.create(require_window=True)
    clock.write(lambda tx: servers.change(tx, clock.server.id, policy=None))
    with pytest.raises(Invalid, match="no maintenance window"):
        clock.change(made, trigger=clock.trigger)
    told = clock.start(made)
    assert f"no maintenance window on {clock.server.name}" in told.last_error
    assert [each.status for each in clock.begun()] == ["FAILED"]
    clock.write(lambda tx: servers.change(tx, clock.server.id, policy=policy))
    told = clock.start(told)
    begun = clock.begun()[0]
    assert (told.last_error, begun.options.require_window) == (None, True)
    (run,) = clock.fleet.running(begun)
    assert run.held_by == "WINDOW"
    assert run.status_reason.startswith(f"Waiting for the maintenance window of {clock.server.name}")


def test_a_changed_schedule_has_a_new_time(clock):
    made = clock.create()
    changed = clock.change(made, cron="30 3 * * *", name="other")
    assert (changed.name, changed.cron, changed.timezone) == ("other", "30 3 * * *", "UTC")
    assert [job[3] for job in clock.jobs()] == [changed.next_at]
    assert changed.next_at.minute == 30
    same = clock.change(made, misfire_policy="SKIP")
    assert [job[3] for job in clock.jobs()] == [same.next_at] == [changed.next_at]
    off = clock.change(made, enabled=False)
    assert (off.next_at, clock.jobs()) == (None, [])
    on = clock.change(made, enabled=True)
    assert [job[3] for job in clock.jobs()] == [on.next_at]
    once = clock.change(made, at=(NOON + timedelta(days=1)).isoformat())
    assert once.cron is None
    clock.delete(made)
    assert clock.jobs() == []
    with pytest.raises(EntityNotFound):
        clock.read(made)


def test_secret_inputs_are_redacted_and_survive_an_update(clock):
    config = clock.fleet.config(inputs=[{"name": "password", "secret": True}, {"name": "a"}])
    made = clock.create(trigger={**clock.trigger, "config_id": config, "input_values": {"password": "x", "a": 1}})
    trigger = clock.fleet.world.read(serialize, made).trigger
    assert trigger["input_values"] == {"password": "******", "a": 1}
    changed = clock.change(made, trigger={**trigger, "name": "n"})
    assert changed.body["input_values"] == {"password": "x", "a": 1}
    clock.start(changed)
    assert clock.begun()[0].input_values == {"password": "x", "a": 1}


def test_a_schedule_keeps_a_limited_number_of_triggers(clock):
    made = clock.create(trigger={**clock.trigger, "signal_transport": "NO_SIGNAL"})
    for _ in range(KEPT + 3):
        made = clock.start(made)
    assert made.run_count == KEPT + 3
    assert clock.fleet.world.work.run(TIDY) == 1
    assert len(clock.begun()) == KEPT
    assert clock.begun()[0].id == made.last_trigger_id


def test_old_triggers_are_deleted_in_batches_unless_they_run(clock, monkeypatch):
    monkeypatch.setattr("stoker.triggers.lifecycle._BATCH", 2)
    many = [each.id for each in (clock.server, *clock.fleet.servers(4))]
    said = {**clock.trigger, "servers": many, "signal_transport": "NO_SIGNAL"}
    monkeypatch.setattr(trigger_schedules, "KEPT", 1)
    made = clock.create(trigger=said)
    for _ in range(3):
        made = clock.start(made)
    newest, middle, oldest = clock.begun()
    again = replace(middle, status=TriggerStatus.IN_PROGRESS)

    def beyond(tx, *_args):
        """The first trigger is retried after the job has found it."""
        return [middle.id, oldest.id]

    clock.write(lambda tx: triggers.save(tx, again))
    monkeypatch.setattr("stoker.store.triggers.oldest_beyond", beyond)
    assert clock.fleet.world.work.run(TIDY) == 1
    assert clock.begun() == [newest, again]
    assert len(clock.fleet.world.read(deployments.list_all, "p")) == 10


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"cron": "x"}, "five fields"),
        ({"cron": "0 0 30 2 *"}, "never comes"),
        ({"cron": "0 2 * * *", "at": "2050-01-01T00:00:00Z"}, "not both"),
        ({"cron": None}, "needs cron, or at"),
        ({"cron": None, "at": "2001-01-01T00:00:00Z"}, "has passed"),
        ({"cron": None, "at": "soon"}, "at must be a time"),
        ({"cron": None, "at": 5}, "at must be a string"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"misfire_policy": "MAYBE"}, "misfire_policy"),
        ({"overlap_policy": "MAYBE"}, "overlap_policy 'MAYBE' is none of REPLACE, QUEUE"),
        ({"enabled": "x"}, "enabled"),
        ({"require_window": 5}, "require_window"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"trigger": []}, "must be a map"),
        ({"trigger": {}}, "needs one of"),
        ({"color": 1}, "unknown member 'color'"),
    ],
)
def test_invalid_schedules_are_refused(clock, said, words):
    with pytest.raises(Invalid, match=words):
        clock.create(**said)
    assert clock.jobs() == []


def test_two_schedules_of_one_name_and_one_of_an_invalid_trigger_are_refused(clock):
    made = clock.create()
    with pytest.raises(Conflict, match="'nightly' exists"):
        clock.create()
    other = clock.create(name="other")
    with pytest.raises(Conflict):
        clock.change(other, name="nightly")
    assert clock.change(made, name="nightly").name == "nightly"

    with pytest.raises(EntityNotFound):
        clock.create(trigger={**clock.trigger, "servers": ["none"]})
