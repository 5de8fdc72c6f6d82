"""Old records of every kind are deleted by jobs, in small transactions, and the present ones stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from stoker.deployments import log_storage
from stoker.deployments.documents import LOG_BYTES
from stoker.model.audit import Decision, Outcome
from stoker.model.deployment import Deployment
from stoker.settings import Settings
from stoker.store import audit, deployments, runs
from stoker.triggers import jobs as trigger_retention
from stoker.triggers import lifecycle
from stoker.work import retention
from stoker.work.retention import PURGE, Kind, Retention
from support import query
from support.clock import age
from support.fleet import Fleet
from support.in_process import Inside
from support.stacks import World
from support.templates import template

DAYS = Settings().retention
#: Tables whose old rows the kinds delete, with the kind that keeps them longest.
TABLES = ("stacks", "events", "runs", "logs", "audit", "triggers")


def create_retention(heat: World) -> Retention:
    ended = Kind("triggers", "ended triggers", lambda store, at: trigger_retention.purge(store, heat.engine, at))
    return Retention(heat.store, heat.work, DAYS, (ended,))


def count(heat: World, table: str) -> int:
    return heat.read(query.count, table)


def deploy_twice(fleet: Fleet) -> Deployment:
    """A deployment of a trigger whose first run failed and whose second is complete. Both wrote output."""
    trigger = fleet.trigger_over(1)
    first = fleet.running(trigger)[0]
    write_output(fleet, first)
    fleet.end(first, code=1)
    fleet.retry(first)
    second = fleet.running(trigger)[0]
    write_output(fleet, second)
    fleet.end(second)
    return second


def write_output(fleet: Fleet, deployment: Deployment) -> None:
    of_run = {"server_id": deployment.server_id, "config_id": deployment.config_id}
    fleet.world.store.write(
        lambda tx: log_storage.append_log(tx, **of_run, stream="stdout", offset=0, data=b"output", most=LOG_BYTES)
    )


@pytest.fixture
def deployment(fleet, heat) -> Deployment:
    """A deployment with an earlier run, beside at least one record of each kind."""
    heat.create(template({"one": {"type": "OS::Heat::None"}}), "kept")
    heat.delete(heat.create(template({"one": {"type": "OS::Heat::None"}}), "gone"))
    decision = Decision(project_id=heat.project, actor="ann", action="create", outcome=Outcome.ALLOWED, reason="")
    heat.store.write(lambda tx: audit.add(tx, decision))
    deployed = deploy_twice(fleet)
    assert {name: count(heat, name) for name in TABLES if not count(heat, name)} == {}
    return deployed


def run_all(heat: World, purging: Retention) -> None:
    heat.work.jobs.clear()
    purging.begin()
    assert heat.work.step(PURGE) == len(TABLES)


def test_each_kind_is_deleted_after_its_own_days(heat, deployment):
    purging = create_retention(heat)
    before = {name: count(heat, name) for name in TABLES}
    run_all(heat, purging)
    assert {name: count(heat, name) for name in TABLES} == before
    for name in TABLES:
        age(heat.store, name, (DAYS[name] + 1) * 86400)
    assert purging.purge("runs") == 1, "the newest run stays"
    with heat.store.read() as tx:
        remaining = runs.list_all(tx, deployments.get(tx, deployment.id))
        assert [run.config_id for run in remaining] == [deployment.config_id]
        assert set(query.column(tx, "SELECT config_id FROM logs")) == {deployment.config_id}
    assert purging.purge("logs") == 1
    assert purging.purge("triggers") == 1
    assert count(heat, "trigger_targets") == count(heat, "runs") == count(heat, "deployments") == 0
    assert purging.purge("stacks") > 1  # with its events
    assert count(heat, "stacks") == 1
    assert purging.purge("events") > 0
    assert purging.purge("audit") > 0
    assert [count(heat, name) for name in ("events", "audit", "logs")] == [0, 0, 0]


def test_jobs_delete_and_defer_themselves(heat, deployment):
    purging = create_retention(heat)
    for name in TABLES:
        age(heat.store, name, (DAYS[name] + 1) * 86400)
    run_all(heat, purging)
    assert {name: count(heat, name) for name in TABLES} == {
        **dict.fromkeys(TABLES, 0),
        "stacks": 1,
    }
    later = {key: at - datetime.now(UTC) for kind, key, _, at in heat.work.jobs if kind == PURGE}
    assert later.keys() == set(TABLES)
    assert timedelta(minutes=50) < min(later.values()) < max(later.values()) < timedelta(hours=25)
    purged = heat.store.metrics.registry.get_sample_value("stoker_retention_rows_total", {"kind": "triggers"})
    assert purged == 1


@pytest.mark.parametrize("by", ["age", "request"])
def test_a_large_trigger_is_deleted_in_parts(heat, monkeypatch, tmp_path, by):
    inside = Inside(tmp_path, heat.store)
    fleet = Fleet(replace(heat, project=inside.project))
    sizes, delete_runs = [], lifecycle._delete_runs
    monkeypatch.setattr(lifecycle, "_BATCH", 2)
    monkeypatch.setattr(lifecycle, "_delete_runs", lambda *of: [sizes.append(len(of[-1])), delete_runs(*of)])
    old = fleet.trigger_over(5)
    for deployment in fleet.running(old):
        fleet.end(deployment)
    age(heat.store, "triggers", 91 * 86400)
    current = fleet.trigger_over(1)
    if by == "age":
        assert create_retention(heat).purge("triggers") == 1
    else:
        inside.call("DELETE", f"/software_triggers/{old.id}")
    assert [size for size in sizes if size] == [2, 1, 2]
    assert fleet.now(current).status == "IN_PROGRESS"
    assert count(heat, "triggers") == count(heat, "deployments") == 1
    inside.close()


def test_earlier_runs_are_deleted_in_every_batch(heat, fleet):
    for _ in range(3):
        deploy_twice(fleet)
    age(heat.store, "runs", 91 * 86400)
    before = datetime.now(UTC)
    assert retention.in_batches(heat.store, lambda tx, n: runs.purge(tx, before, n), batch=1) == 3
    assert create_retention(heat).purge("runs") == 0
    assert count(heat, "runs") == 0
