"""Checks and drift: what a report changes, what enforcement runs and when, and what the stack learns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from stoker.deployments import checks as deployment_checks
from stoker.deployments import drift
from stoker.deployments.checks import REMEDIATE
from stoker.deployments.documents import Documents
from stoker.deployments.drift import CheckReport
from stoker.model.deployment import Check, CheckState, Deployment
from stoker.model.errors import EntityNotFound, Invalid, StackValidationFailed
from stoker.model.server import Kind
from stoker.model.stack import Action, Stack
from stoker.policy import authorizer
from stoker.stacks import repetition
from stoker.store import audit, checks, deployments, rows, runs, servers
from support import query
from support.deployments import begin
from support.fleet import Fleet
from support.stacks import World, values
from support.templates import config, on, template

SERVER = "00000000-0000-4000-8000-000000000001"
NIGHT = {"maintenance_windows": [{"cron": "0 2 * * *", "minutes": 120}]}
CHANGES = [{"item": "/etc/motd", "outcome": "changed", "diff": "-a\n+b"}]


@dataclass
class Checked:
    """A stack with one complete deployment on an enrolled server."""

    heat: World
    stack: Stack

    @property
    def deployment(self) -> Deployment:
        (only,) = self.heat.deployments()
        return only

    @property
    def check(self) -> Check | None:
        return self.heat.read(checks.find, self.deployment.id)

    def report(self, state: str, **more: Any) -> Check:
        """Report a check as the agent does."""
        changes = CHANGES if state == "DRIFTED" else ()
        values = {"deployment_id": self.deployment.id, "config_id": self.deployment.config_id, "changes": changes}
        report = CheckReport(**{**values, "state": CheckState(state), **more})
        self.heat.store.write(lambda tx: drift.apply_report(tx, self.heat.engine.env, SERVER, report))
        check = self.check
        assert check is not None
        return check

    def request(self) -> Check:
        """Request a check as a user does."""
        (check,) = self.heat.store.write(lambda tx: deployment_checks.request(tx, [self.deployment.id]))
        return check

    def complete(self, **values: Any) -> None:
        """Report the end of the current run."""
        self.heat.report(self.deployment, **values)

    def update(self, **properties: Any) -> None:
        self.stack = self.heat.update(self.stack, _template(properties))

    def runs(self) -> list[tuple[str | None, str | None]]:
        """Return the requesting user and the status of each run, oldest first."""
        with self.heat.store.read() as tx:
            history = runs.list_all(tx, deployments.get(tx, self.deployment.id))
            return [(run.requested_by, run.status) for run in reversed(history)]

    def reasons(self) -> list[str]:
        """Return the reasons of the events of signals."""
        return [event.reason for event in self.heat.stored_events(self.stack) if event.action == "SIGNAL"]

    def document(self) -> list[dict[str, Any]] | None:
        """Return the checks of the agent's document, or None if the document has no such member."""
        return json.loads(Documents(self.heat.store).load_agents([(SERVER, True)])[0].body).get("checks")


def _template(properties: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return template({"config": config(options=dict(options or {})), "d": on(SERVER, **properties)})


def enroll(heat: World, **more: Any) -> None:
    Fleet(heat).enroll("web1", id=SERVER, **more)


def create(
    heat: World,
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    **properties: Any,
) -> Checked:
    """Create the stack and complete its deployment."""
    enroll(heat)
    checked = Checked(heat, heat.create(_template(properties, options), environment=environment))
    checked.complete()
    assert checked.deployment.status == "COMPLETE"
    return checked


def set_policy(heat: World, policy: Mapping[str, Any] | None) -> None:
    heat.store.write(lambda tx: servers.change(tx, SERVER, policy=policy))


@pytest.mark.parametrize(
    ("options", "properties", "settings"),
    [
        ({}, {}, None),
        ({"check_interval": 60}, {}, (60, False)),
        ({"check_interval": 60, "enforce": True}, {}, (60, True)),
        ({"check_interval": 60, "enforce": True}, {"check_interval": 5, "enforce": False}, (5, False)),
        ({}, {"enforce": True}, (None, True)),
    ],
)
def test_properties_of_a_deployment_take_precedence_over_options_of_its_config(heat, options, properties, settings):
    check = create(heat, options, **properties).check
    assert (check and (check.check_interval, check.enforce)) == settings
    assert check is None or check.state is CheckState.UNKNOWN


@pytest.mark.parametrize("wrong", [{"check_interval": 1}, {"check_interval": "often"}, {"enforce": "yes"}])
def test_wrong_settings_are_refused_with_the_config_or_the_template(heat, wrong):
    ((name, _),) = wrong.items()
    stack = heat.create(template({"config": config(options=wrong)}))
    assert str(stack.status) == "FAILED"
    assert f"the option {name} must be" in stack.reason
    with pytest.raises(StackValidationFailed, match=name):
        heat.create(_template(wrong), "wrong")


def test_only_checked_deployments_are_in_the_agents_document(heat):
    checked = create(heat)
    assert checked.document() is None
    checked.update(check_interval=60)
    assert len(checked.runs()) == 1, "a setting of checks needs no run"
    (entry,) = checked.document() or ()
    assert entry["id"] == checked.deployment.config_id
    assert (entry["deployment_id"], entry["interval"], entry["requested"]) == (checked.deployment.id, 60, None)
    checked.update(check_interval=60, input_values={"x": "1"})  # a run
    assert checked.document() is None
    checked.complete()
    assert checked.document() != [entry]
    checked.update(input_values={"x": "1"})
    assert checked.document() is None


def test_drift_begins_and_ends_once(heat, clock):
    checked = create(heat, check_interval=60)
    assert checked.report("IN_SYNC").drifted_at is None
    assert checked.reasons() == [], "that a server is in sync is no event"
    began = checked.report("DRIFTED")
    assert (began.since, began.drifted_at, began.changes) == (clock.moment, clock.moment, tuple(CHANGES))
    clock.until(heat.work, "2026-05-01 13:00")
    later = checked.report("DRIFTED", changes=[*CHANGES, {"item": "b", "odd": 1}, "x"])
    assert (later.since, later.drifted_at, len(later.changes)) == (began.since, began.since, 2)
    assert checked.report("UNKNOWN", reason="no such tool").drifted_at == began.since
    ended = checked.report("IN_SYNC")
    assert (ended.since, ended.drifted_at, ended.changes) == (clock.moment, None, ())
    assert checked.reasons() == ["Signal: drift began: /etc/motd", "Signal: drift ended: the server is in sync"]
    assert heat.states(checked.stack)["d"] == "CREATE_COMPLETE"
    assert len(checked.runs()) == 1


def test_late_and_foreign_reports_change_nothing(heat):
    checked = create(heat, check_interval=60)
    before = checked.report("IN_SYNC")
    assert checked.report("DRIFTED", config_id="another") == before
    with pytest.raises(EntityNotFound):
        checked.report("DRIFTED", deployment_id="another")
    with pytest.raises(EntityNotFound):
        report = CheckReport(
            deployment_id=checked.deployment.id, config_id=checked.deployment.config_id, state=CheckState.DRIFTED
        )
        heat.store.write(lambda tx: drift.apply_report(tx, heat.engine.env, "another", report))
    checked.update(check_interval=60, input_values={"x": "1"})
    assert checked.report("DRIFTED").state is CheckState.UNKNOWN, "the run is in progress"


def test_a_request_is_pending_until_its_own_answer(heat, clock):
    checked = create(heat)
    requested = checked.request()
    (entry,) = checked.document() or ()
    assert entry["requested"] == rows.to_micros(requested.requested_at)
    assert checked.report("IN_SYNC").requested_at == requested.requested_at, "a check from before the request"
    assert checked.report("IN_SYNC", requested=entry["requested"]).requested_at is None
    assert checked.document() is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": Kind.DEPLOYED, "key_generation": 0}, "is not Stoker's own"),
        ({"last_seen": datetime.now(UTC), "agent_version": "0.0.9"}, "(version 0.0.9) is too old"),
        (None, "Stoker has no server with the id"),
    ],
)
def test_a_request_without_a_possible_answer_gets_a_reason(heat, change, reason):
    checked = create(heat)
    heat.store.write(lambda tx: servers.delete(tx, SERVER))
    if change is not None:
        enroll(heat, **change)
    check = checked.request()
    assert (check.state, check.requested_at) == (CheckState.UNKNOWN, None)
    assert reason in check.reason


def test_enforcement_runs_the_same_config_again_and_leaves_the_stack_alone(heat, clock):
    checked = create(heat, check_interval=60, enforce=True)
    first = checked.deployment
    before = {name: dict(row.data) for name, row in heat.resources(checked.stack).items()}
    started = checked.report("DRIFTED")
    assert (started.state, started.reason) == (CheckState.DRIFTED, "Remediation 1 has started")
    assert (checked.deployment.status, checked.deployment.id) == ("IN_PROGRESS", first.id)
    assert heat.states(checked.stack)["d"] == "CREATE_COMPLETE"
    assert str(heat.settled(checked.stack.id).status) == "COMPLETE"
    assert before == {name: dict(row.data) for name, row in heat.resources(checked.stack).items()}
    inputs = values(heat.entry(SERVER)["inputs"])
    assert (inputs["deploy_resource_name"], inputs["deploy_action"]) == ("d", "CREATE")
    checked.complete()
    assert checked.report("IN_SYNC").drifted_at is None
    assert checked.runs() == [(None, "COMPLETE"), ("enforce", "COMPLETE")]
    assert checked.reasons()[-1] == "Signal: drift ended: the server is in sync"


def test_enforcement_that_is_switched_on_repairs_known_drift_until_its_deployment_is_deleted(heat):
    checked = create(heat, check_interval=60)
    checked.report("DRIFTED")
    checked.update(check_interval=60, enforce=True)
    assert heat.work.step(REMEDIATE) == 1
    assert checked.deployment.status == "IN_PROGRESS"

    id = checked.deployment.id
    heat.delete(checked.stack)
    with heat.store.read() as tx:
        assert (checks.find(tx, id), deployments.find(tx, id)) == (None, None)
    heat.work.run(REMEDIATE)


def test_a_remediation_that_does_not_last_doubles_the_pause(heat, clock):
    checked = create(heat, check_interval=60, enforce=True)
    began, pauses = clock.moment, []
    check = checked.report("DRIFTED")
    for number in range(1, 5):
        assert check.remediations == number
        pauses.append((check.remediate_at - clock.moment).total_seconds())
        checked.complete()
        postponed = checked.report("DRIFTED")
        assert checked.deployment.status == "COMPLETE", "the pause is not over"
        assert f"the next starts at {rows.heat_time(check.remediate_at)}" in postponed.reason
        clock.until(heat.work, check.remediate_at.strftime("%Y-%m-%d %H:%M:%S"))
        assert checked.deployment.status == "IN_PROGRESS"
        check = checked.check
    assert pauses == [30, 60, 120, 240]
    checked.complete()
    assert checked.report("IN_SYNC").drifted_at is None
    clock.until(heat.work, "2026-05-02 12:00")
    assert checked.report("DRIFTED").remediations == 1, "after the pause, drift is a new case"
    assert began < clock.moment


def test_a_failed_remediation_is_tried_again_after_the_pause_or_by_a_user(heat, clock):
    checked = create(heat, check_interval=60, enforce=True)
    checked.report("DRIFTED")
    checked.complete(deploy_status_code=1)
    assert checked.deployment.status == "FAILED"
    assert heat.states(checked.stack)["d"] == "CREATE_COMPLETE"
    clock.until(heat.work, "2026-05-01 12:00:31")
    assert checked.deployment.status == "IN_PROGRESS"
    clock.until(heat.work, "2026-05-01 12:05")
    assert len(checked.runs()) == 3, "one remediation at a time"
    checked.complete(deploy_status_code=1)
    retried = heat.store.write(lambda tx: repetition.retry(tx, heat.engine, checked.deployment, "ann"))
    assert (retried.status, checked.runs()[-1][0]) == ("IN_PROGRESS", "ann")
    checked.complete()
    assert checked.report("IN_SYNC").drifted_at is None


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("is_retry", [False, True])
def test_enforcement_goes_on_after_a_users_repair_that_fails(heat, clock, is_retry, is_slow):
    checked = create(heat, check_interval=60, enforce=True)
    checked.report("DRIFTED")
    checked.complete(deploy_status_code=int(is_retry))
    if is_retry:
        heat.store.write(lambda tx: repetition.retry(tx, heat.engine, checked.deployment, "ann"))
    else:
        checked.report("DRIFTED")
        heat.store.write(lambda tx: drift.repair(tx, heat.engine.env, checked.deployment, "ann"))
    if is_slow:
        clock.until(heat.work, "2026-05-01 12:10")
    checked.complete(deploy_status_code=1)
    assert checked.check.state is CheckState.UNKNOWN
    clock.until(heat.work, "2026-05-01 12:20")
    assert [requested_by for requested_by, _ in checked.runs()] == [None, "enforce", "ann", "enforce"]
    assert (checked.deployment.status, checked.check.state) == ("IN_PROGRESS", CheckState.DRIFTED)


def test_enforcement_goes_on_after_a_users_repair_that_a_suspension_cancelled(heat, clock):
    checked = create(heat, check_interval=60, enforce=True)
    checked.report("DRIFTED")
    checked.complete()
    checked.report("DRIFTED")
    heat.store.write(lambda tx: drift.repair(tx, heat.engine.env, checked.deployment, "ann"))
    heat.visit(checked.stack, Action.SUSPEND)
    assert checked.deployment.status == "FAILED"
    clock.until(heat.work, "2026-05-01 12:10")
    heat.visit(checked.stack, Action.RESUME)
    assert heat.work.step(REMEDIATE) == 1
    assert [requested_by for requested_by, _ in checked.runs()] == [None, "enforce", "ann", "enforce"]


def test_a_remediation_waits_for_the_maintenance_window(heat, clock):
    checked = create(heat, check_interval=60, enforce=True)
    set_policy(heat, NIGHT)
    checked.report("DRIFTED")
    assert (checked.deployment.status, checked.deployment.held_by) == ("IN_PROGRESS", "WINDOW")
    assert heat.to_run(SERVER) == []
    clock.until(heat.work, "2026-05-02 01:59")
    assert (len(checked.runs()), heat.to_run(SERVER)) == (2, [])
    clock.until(heat.work, "2026-05-02 02:00")
    assert len(heat.to_run(SERVER)) == 1
    assert authorizer.WINDOW_JOB in heat.work.handlers


def test_a_policy_that_denies_a_remediation_is_audited(heat, clock):
    checked = create(heat, check_interval=60, enforce=True)
    set_policy(heat, {"groups": ["ansible"]})
    check = checked.report("DRIFTED")
    assert check.reason.startswith("The remediation is denied: ")
    assert (checked.deployment.status, len(checked.runs())) == ("COMPLETE", 1)
    entry, *_ = heat.read(audit.list_all, "p")
    assert (entry.decision.outcome.value, entry.decision.actor) == ("REFUSED", "enforce")
    set_policy(heat, None)
    clock.until(heat.work, "2026-05-01 12:00:31")
    assert checked.deployment.status == "IN_PROGRESS"


def test_a_run_of_the_stack_supersedes_a_remediation_and_resets_the_check(heat, clock):
    checked = create(heat, check_interval=60, enforce=True)
    checked.report("DRIFTED")
    checked.update(check_interval=60, enforce=True, input_values={"x": "1"})
    assert checked.check.state is CheckState.UNKNOWN
    clock.until(heat.work, "2026-05-01 12:10")
    assert [requested_by for requested_by, _ in checked.runs()] == [None, "enforce", None]
    checked.complete()
    assert checked.report("IN_SYNC").drifted_at is None
    assert checked.reasons()[-1] == "Signal: drift ended: the server is in sync"


def test_secrets_in_differences_are_redacted(heat):
    enroll(heat)
    definition = _template({"check_interval": 60, "input_values": {"password": {"get_param": "password"}}})
    definition["resources"]["config"]["properties"]["inputs"] = [{"name": "password"}]
    definition["parameters"] = {"password": {"type": "string", "hidden": True}}
    checked = Checked(heat, heat.create(definition, parameters={"password": "correct horse"}))
    checked.complete()
    check = checked.report("DRIFTED", changes=[{"item": "a", "diff": "+correct horse"}], reason="correct horse")
    assert "correct horse" not in check.reason
    with heat.store.read() as tx:
        stored = query.scalar(tx, "SELECT changes FROM checks")
        assert checks.find(tx, checked.deployment.id).changes[0]["diff"] == "+******"
    assert "correct horse" not in stored


SINK = {"type": "zaqar-queue", "target": "drift", "ttl": 120}


def list_messages(heat: World, name: str) -> list[dict[str, Any]]:
    """Return the types, states and reasons of the messages in a queue of the project."""
    return [{"type": body["type"], **body["payload"]} for body in heat.messages(name)]


def test_drift_of_a_clients_deployment_goes_to_the_sinks_of_its_config(heat, clock):
    create(heat)
    options = {"check_interval": 60, "event_sinks": [SINK]}
    run = begin(heat.store, "motd", server=SERVER, options=options)
    heat.report(run)
    for state in ("IN_SYNC", "DRIFTED", "DRIFTED", "IN_SYNC"):
        changes = CHANGES if state == "DRIFTED" else ()
        report = CheckReport(deployment_id=run.id, config_id=run.config_id, changes=changes, state=CheckState(state))
        heat.store.write(lambda tx, report=report: drift.apply_report(tx, heat.engine.env, SERVER, report))
    began, ended = list_messages(heat, "drift")
    named = {"deployment_id": run.id, "name": "motd", "server_id": SERVER, "server_name": "web1", "stack_id": None}
    assert began == {"type": "stoker.drift", **named, "state": "DRIFTED", "reason": "drift began: /etc/motd"}
    assert (ended["state"], ended["reason"]) == ("IN_SYNC", "drift ended: the server is in sync")


@pytest.mark.parametrize(("target", "types"), [("drift", ["stoker.drift"]), ("own", [])])
def test_in_a_stack_a_queue_gets_drift_once(heat, target, types):
    options = {"check_interval": 60, "event_sinks": [{**SINK, "target": target}]}
    checked = create(heat, options, environment={"event_sinks": [{**SINK, "target": "own"}]})
    checked.report("DRIFTED")
    assert [each["type"] for each in list_messages(heat, target) if each["type"] == "stoker.drift"] == types
    reasons = [each["resource_status_reason"] for each in list_messages(heat, "own")]
    assert reasons.count("Signal: drift began: /etc/motd") == 1


@pytest.mark.parametrize("sinks", ["drift", [{}], [{**SINK, "ttl": 1}], [SINK] * 11, [{**SINK, "target": "no queue"}]])
def test_wrong_event_sinks_of_a_config_are_refused(heat, sinks):
    with pytest.raises(Invalid, match=r"resources\.config\.properties: The option event_sinks"):
        create(heat, {"event_sinks": sinks})


def test_deployments_of_triggers_are_not_checked(heat, fleet):
    checked = create(heat, {"check_interval": 60})
    trigger = fleet.trigger(config_id=fleet.config(options={"check_interval": 60}), servers=[SERVER])
    (run,) = fleet.running(trigger)
    heat.report(run)
    assert [entry["deployment_id"] for entry in checked.document() or ()] != [run.id]
    with heat.store.read() as tx:
        assert checks.find(tx, run.id) is None
        assert run.id not in checks.checkable_on(tx, "p", [SERVER])


def test_checks_are_listed_in_pages(heat, fleet):
    (machine,) = fleet.servers(1)
    resources = {"config": config()}
    for number in range(5):
        resources[f"d{number}"] = on(machine.id, check_interval=60)
    heat.create(template(resources))
    with heat.store.read() as tx:
        every = checks.list_all(tx, heat.project)
        first = checks.list_all(tx, heat.project, limit=2)
        rest = checks.list_all(tx, heat.project, after=first[-1].position)
        some = checks.list_all(tx, heat.project, ids=[row.check.deployment_id for row in every[1:4]], limit=2)
    assert (len(every), len(first), [*first, *rest], some) == (5, 2, every, every[1:3])


def runs_named(checked: Checked, name: str) -> int:
    """Return the number of runs that ``name`` requested."""
    return [requested_by for requested_by, _ in checked.runs()].count(name)


@pytest.mark.parametrize("suspended", ["while drifting", "before the drift"])
def test_enforcement_pauses_while_the_stack_is_suspended(heat, clock, suspended):
    checked = create(heat, check_interval=60, enforce=True)
    checked.report("IN_SYNC")
    if suspended == "while drifting":
        checked.report("DRIFTED")
        assert checked.deployment.status == "IN_PROGRESS"
        heat.visit(checked.stack, Action.SUSPEND)
        assert checked.deployment.status_reason == "Cancelled: the stack is suspended before it was delivered"
    else:
        heat.visit(checked.stack, Action.SUSPEND)
        assert checked.report("DRIFTED").reason == "Paused: the stack is suspended"
    count = runs_named(checked, "enforce")
    heat.work.step(REMEDIATE)
    assert (runs_named(checked, "enforce"), checked.check.reason) == (count, "Paused: the stack is suspended")
    heat.visit(checked.stack, Action.RESUME)
    assert heat.work.step(REMEDIATE) == 1
    clock.until(heat.work, "2026-05-01 12:00:31")
    assert runs_named(checked, "enforce") == count + 1
    checked.complete()
    assert heat.states(checked.stack)["d"] == "RESUME_COMPLETE"
