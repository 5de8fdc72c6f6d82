"""Reports of many agents in one transaction: the same effects as one by one."""

from __future__ import annotations

from stoker.deployments.run_end import Report, apply
from stoker.model.errors import EntityNotFound
from stoker.store import deployments, runs
from stoker.triggers.lifecycle import GO_ON
from support.statements import recorded_statements
from support.templates import config, define, deployment, template

LIMIT = 1024 * 1024


def report(each, code=0, **values):
    return Report(each.server_id, each.config_id, {"deploy_stdout": "", "deploy_status_code": code, **values})


def together(fleet, *reports):
    world = fleet.world
    statuses = world.store.write(lambda tx: apply(tx, world.engine.env, reports, LIMIT))
    world.work.run(GO_ON)
    return statuses


def output(fleet, each):
    return "".join(chunk.data for chunk in fleet.world.read(runs.page_output, each.id, 0).chunks)


def test_all_runs_end_with_their_own_outputs_and_logs(fleet):
    trigger = fleet.trigger_over(4, config={"outputs": [{"name": "size"}]})
    running = fleet.running(trigger)
    codes = (0, 0, 3, 0)
    reports = [
        report(each, code, deploy_stdout=f"out {n}\n", deploy_stderr="oops\n" if code else "", size=str(n))
        for n, (each, code) in enumerate(zip(running, codes, strict=True))
    ]
    assert together(fleet, *reports) == ["COMPLETE", "COMPLETE", "FAILED", "COMPLETE"]

    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 3, "failed": 1, "cancelled": 0}
    assert fleet.now(trigger).status_reason == "1 of 4 failed"
    for n, each in enumerate(running):
        assert output(fleet, each) == f"out {n}\n" + ("oops\n" if codes[n] else "")
        with fleet.world.store.read() as tx:
            run, stored = deployments.get(tx, each.id).run, deployments.get(tx, each.id)
        assert stored.output_values["size"] == str(n)
        assert (run.state, run.status, run.status_code) == ("DONE", stored.status, str(codes[n]))
        assert run.stdout_bytes == len(f"out {n}\n")
    assert "exited with non-zero status code: 3" in fleet.targets(trigger)[2].status_reason


def test_ended_runs_start_the_next_targets_unless_too_many_have_failed(fleet):
    trigger = fleet.trigger_over(7, max_concurrent=3)
    while running := fleet.running(trigger):
        assert len(running) <= 3
        together(fleet, *(report(each) for each in running))
        fleet.exact(trigger)
    assert fleet.now(trigger).status == "COMPLETE"

    trigger = fleet.trigger_over(10, max_concurrent=4, max_fail_percentage=20)
    together(fleet, *(report(each, 1) for each in fleet.running(trigger)))
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 0, "failed": 4, "cancelled": 6}
    assert fleet.now(trigger).status == "FAILED"


def test_late_repeated_and_unknown_reports_change_nothing(fleet):
    trigger = fleet.trigger_over(3)
    first, second, third = fleet.running(trigger)
    fleet.end(first)
    stranger = Report(first.server_id, second.config_id, {})
    statuses = together(fleet, report(first, 1), report(second), report(second, 1), stranger, report(third))
    assert isinstance(statuses.pop(3), EntityNotFound)
    assert statuses == ["COMPLETE"] * 4
    assert fleet.exact(trigger)["complete"] == 3


def test_a_secret_of_one_run_is_not_redacted_in_another(fleet):
    trigger = fleet.trigger_over(
        2,
        config={"inputs": [{"name": "password", "secret": True, "default": "hunter22"}], "outputs": []},
    )
    other = fleet.trigger_over(1)
    (plain,), secret = fleet.running(other), fleet.running(trigger)
    text = "the word hunter22 is printed\n"
    reports = [report(each, 1, deploy_stdout=text, deploy_status_reason=text) for each in (*secret, plain)]
    assert together(fleet, *reports) == ["FAILED"] * 3
    assert output(fleet, plain) == text
    assert "hunter22" in fleet.deployment(fleet.targets(other)[0]).status_reason
    for each in secret:
        assert "hunter22" not in output(fleet, each)
    for target in fleet.targets(trigger):
        assert "hunter22" not in target.status_reason
        assert "hunter22" not in fleet.deployment(target).status_reason


def test_reports_of_stacks_and_triggers_come_together(fleet):
    world = fleet.world
    resources = {
        "server": define("OS::Heat::DeployedServer", name="s"),
        "config": config("true"),
        "one": deployment(server="server"),
        "two": {**deployment(server="server"), "depends_on": "one"},
    }
    stack = world.create(template(resources))
    (owned,) = world.read(deployments.list_all, world.project)
    trigger = fleet.trigger_over(1)
    assert together(fleet, report(owned), *(report(each) for each in fleet.running(trigger))) == ["COMPLETE"] * 2
    assert fleet.now(trigger).status == "COMPLETE"
    assert world.resources(stack)["two"].status == "IN_PROGRESS"


def test_the_number_of_queries_does_not_depend_on_the_number_of_reports(fleet):
    counted = []
    for count in (3, 12):
        running = fleet.running(fleet.trigger_over(count))
        with recorded_statements(fleet.world.store, only_own=True) as statements:
            together(fleet, *(report(each, deploy_stdout="a line\n") for each in running))
        counted.append(sum(statement.startswith("SELECT") for statement in statements))
    assert counted[0] == counted[1]
