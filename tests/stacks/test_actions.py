"""The tables of docs/actions.md: which action runs, with which values, after an action that did not complete."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from stoker.deployments import run_end, runs, service
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound, StokerError
from stoker.model.server import Server
from stoker.model.stack import Action, Stack
from stoker.stacks import operations, repetition
from stoker.stacks.operations import Options
from stoker.store import rows, servers, stacks
from support.clock import age
from support.fleet import Fleet
from support.stacks import World
from support.templates import define, template

PAGE = Path(__file__).parents[2] / "docs" / "actions.md"
ACTIONS = ["CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME"]
KINDS = ("config", "component", "member")
NO_SCRIPTS = {"groups": ["puppet"]}


def tables() -> dict[str, list[list[str]]]:
    """Return the rows of each table of the page, with the header first, by the title of its section."""
    sections: dict[str, list[list[str]]] = {}
    title = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            title = line.strip("# ")
        elif line.startswith("|") and not line.startswith("|---"):
            sections.setdefault(title, []).append([cell.strip() for cell in line.strip("|").split("|")])
    return sections


def cells(title: str) -> list[Any]:
    """Return (row, column, expected cell) for each cell of a table."""
    (_, *columns), *lines = tables()[title]
    return [
        pytest.param(row, column, value, id=f"{row}-{column}".replace(" ", "_"))
        for row, *values in lines
        for column, value in zip(columns, values, strict=True)
    ]


@dataclass
class Story:
    """A stack with one deployment, and the runs that a simulated agent has completed since ``forget``."""

    heat: World
    server: Server
    kind: str
    stack: Stack = field(init=False)
    runs: list[str] = field(default_factory=list)
    #: The files of the stack's templates.
    files: dict[str, str] = field(default_factory=dict)
    #: The actions that the preview of the last update named, and the runs that were pending then.
    plan: list[str] | None = None
    before: list[str] = field(default_factory=list)

    def definition(self, value: int, **properties: Any) -> dict[str, Any]:
        """Return the resource ``d``, whose input ``v`` is ``value``."""
        shared = {
            "config": {"get_resource": "config"},
            "actions": ACTIONS,
            "input_values": {"v": value},
            "signal_transport": "STOKER_SIGNAL",
            "timeout": 60,
            **properties,
        }
        if self.kind == "member":
            servers = {"m": shared.pop("server", self.server.id)}
            return define("OS::Heat::SoftwareDeploymentGroup", **shared, servers=servers)
        return define("OS::Heat::SoftwareDeployment", **{"server": self.server.id, **shared})

    def template(self, value: int | None, **more: Any) -> dict[str, Any]:
        """Return the stack's template; without ``value`` it has no deployment."""
        resources = {} if value is None else {"d": self.definition(value)}
        return template({"config": self.config(), **resources, **more})

    def config(self) -> dict[str, Any]:
        if self.kind == "component":
            configs = [{"actions": [action], "config": action, "tool": "script"} for action in (*ACTIONS, "BACKUP")]
            return define("OS::Heat::SoftwareComponent", inputs=[{"name": "v"}], configs=configs)
        return define("OS::Heat::SoftwareConfig", group="script", config="echo", inputs=[{"name": "v"}])

    @property
    def target(self) -> dict[str, str]:
        """Return what a trigger of the deployment names."""
        return {"stack": self.stack.id, "resource": "config" if self.kind == "component" else "d"}

    def create(self, value: int | None, *, rollback: bool = False, **more: Any) -> None:
        options = Options(disable_rollback=not rollback)
        self.stack = self.heat.create(self.template(value, **more), options=options, files=self.files)

    def update(self, value: int | None = None, *, rollback: bool = False, **more: Any) -> None:
        options, changed = Options(disable_rollback=not rollback), self.template(value, **more)
        self.foresee(changed)
        self.stack = self.heat.update(self.stack, changed, options, files=self.files)

    def foresee(self, changed: dict[str, Any]) -> None:
        """Set ``plan`` to the actions that the preview of an update names, after those of pending runs."""
        _, runs = self.heat.plan(self.stack, changed, files=self.files)
        self.plan = [run.action for run in runs]
        self.before = [name for _, name in self.pending()]

    def pending(self) -> list[tuple[Deployment, str]]:
        """Return the runs in the server's document, with names such as ``CREATE1``."""
        pending = self.heat.pending(self.server.id)
        return [(deployment, f"{inputs['deploy_action']}{inputs['v']}") for deployment, inputs in pending]

    def report(self, deployment: Deployment, **values: Any) -> None:
        self.heat.report(deployment, **values)
        self.stack = self.heat.settled(self.stack.id)

    def complete(self) -> None:
        """Complete all runs one after the other, as an agent does."""
        while waiting := self.pending():
            assert len(self.runs) < 10, self.runs
            deployment, name = waiting[0]
            self.runs.append(name)
            self.report(deployment)

    def forget(self) -> None:
        """Complete all runs, and forget them."""
        self.complete()
        self.runs.clear()

    def establish(self, value: int | None, **more: Any) -> None:
        """Create the stack, and complete its runs."""
        self.create(value, **more)
        self.forget()

    def value(self) -> int:
        """Return the value of the present template."""
        template = self.heat.read(stacks.source, self.stack.id).template
        value: int = template["resources"]["d"]["properties"]["input_values"]["v"]
        return value

    def current(self) -> Deployment:
        """Return the only deployment of the stack."""
        (deployment,) = [one for one in self.heat.deployments() if one.trigger_id is None]
        return deployment

    def allow(self, policy: dict[str, Any] | None) -> None:
        self.heat.store.write(lambda tx: servers.change(tx, self.server.id, policy=policy))

    def write(self, do: Callable[..., Any]) -> None:
        self.heat.store.write(do)
        self.stack = self.heat.settled(self.stack.id)


def end(story: Story, ending: str, deployment: Deployment | None = None) -> None:
    """Let the pending run end, or not."""
    deployment = deployment or story.current()
    env = story.heat.engine.env
    if ending == "failed":
        story.report(deployment, deploy_status_code=1)
    elif ending == "cancelled":
        story.write(lambda tx: service.cancel(tx, env, deployment, "ann", force=True))
    elif ending == "timed out":
        run = {"server_id": deployment.server_id, "config_id": deployment.config_id}
        story.write(lambda tx: runs.heartbeat(tx, **run))
        age(story.heat.store, "deployments", 100)
        job = {"deployment_id": deployment.id, "config_id": deployment.config_id}
        story.write(lambda tx: run_end.expire(tx, env, job))
    elif ending == "running":
        story.report(deployment, deploy_status="IN_PROGRESS", deploy_status_code=None)
    else:
        assert ending == "queued", ending


def refused(do: Callable[[], Any]) -> bool:
    try:
        do()
    except StokerError:
        return True
    return False


def outcome(story: Story, do: Callable[[], Any]) -> str:
    """Return the cell for what ``do`` has run, and compare it with the preview if ``do`` is an update."""
    story.plan = None
    if refused(do):
        return "refused"
    story.complete()
    assert story.stack.status != "IN_PROGRESS", story.stack
    if story.plan is not None:
        assert story.plan == [name[:-1] for name in story.runs if name not in story.before]
    return ", ".join(story.runs) or "–"


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.slow if kind != "component" else ()) for kind in KINDS])
def story(heat: World, request: pytest.FixtureRequest) -> Story:
    (server,) = Fleet(heat).servers(1)
    return Story(heat, server, request.param)


def arrange(story: Story, row: str, *, rollback: bool) -> None:
    """Bring the deployment of a story to the state of a row, by operations with or without an automatic rollback."""
    run, ending = row.split(" ", 1)
    action, value = run[:-1], int(run[-1])
    # The server's id is not known before the creation begins. Otherwise a denied creation would be refused.
    where = {"which": define("OS::Heat::Value", value=story.server.id)}
    definition = story.definition(value, server={"get_attr": ["which", "value"]})
    if action != "CREATE":
        story.establish(1)
    if ending == "denied":
        story.allow(NO_SCRIPTS)
    if action == "CREATE":
        story.create(1, rollback=rollback, **where, d=definition)
    elif action == "UPDATE":
        story.update(2, rollback=rollback)
    elif action in ("SUSPEND", "RESUME"):
        suspend(story)
        if action == "RESUME":
            story.forget()
            resume(story)
    else:
        story.update(rollback=rollback)
    if ending == "denied":
        story.allow(None)
        return
    ((deployment, name),) = story.pending()
    assert name == run
    end(story, ending, deployment)


def suspend(story: Story) -> None:
    story.write(lambda tx: operations.run_action(tx, story.heat.engine, story.stack.id, Action.SUSPEND))


def resume(story: Story) -> None:
    story.write(lambda tx: operations.run_action(tx, story.heat.engine, story.stack.id, Action.RESUME))


def suspend_and_resume(story: Story) -> None:
    """Suspend and resume the stack, which fail because of the failed deployment, and leave its state as it was."""
    before = story.heat.states(story.stack)
    for act in (suspend, resume):
        act(story)
        assert story.stack.status == "FAILED"
        assert "invalid for" in story.stack.reason
        assert story.heat.states(story.stack)["d"] == before["d"]


def retry(story: Story) -> None:
    owned = [one for one in story.heat.deployments() if one.trigger_id is None]
    if not owned:
        raise EntityNotFound("there is no deployment")
    story.write(lambda tx: repetition.retry(tx, story.heat.engine, owned[0], "ann"))


def roll_back(story: Story) -> None:
    """The automatic rollback has begun with the failure. An operation in progress is cancelled."""
    if story.stack.action is not Action.ROLLBACK:
        story.write(lambda tx: operations.cancel(tx, story.heat.engine, story.stack.id, rollback=True))


def delete(story: Story) -> None:
    story.write(lambda tx: operations.delete(tx, story.heat.engine, story.stack.id))


OPERATIONS: dict[str, Callable[[Story], None]] = {
    "retry": retry,
    "update, no change": lambda story: story.update(story.value()),
    "update": lambda story: story.update(story.value() + 1),
    "rollback": roll_back,
    "suspend": suspend_and_resume,
    "suspend again": suspend,
    "resume again": resume,
    "delete": delete,
}


@pytest.mark.parametrize(("row", "column", "cell"), cells("After CREATE and UPDATE"))
def test_after_create_and_update(story: Story, row: str, column: str, cell: str) -> None:
    arrange(story, row, rollback=column == "rollback")
    assert outcome(story, lambda: OPERATIONS[column](story)) == cell


@pytest.mark.parametrize(("row", "column", "cell"), cells("After SUSPEND and RESUME"))
def test_after_suspend_and_resume(story: Story, row: str, column: str, cell: str) -> None:
    arrange(story, row, rollback=False)
    assert outcome(story, lambda: OPERATIONS[column](story)) == cell


REMOVED: dict[str, Callable[[Story], None]] = {
    **OPERATIONS,
    "update": lambda story: story.update(more=define("OS::Heat::Value", value=1)),
    "added again": lambda story: story.update(3),
}


@pytest.mark.parametrize(("row", "column", "cell"), cells("After the removal of a deployment by an update"))
def test_after_a_removal(story: Story, row: str, column: str, cell: str) -> None:
    arrange(story, row, rollback=column == "rollback")
    assert outcome(story, lambda: REMOVED[column](story)) == cell


@pytest.mark.parametrize("story", ["config", "component"], indirect=True)
@pytest.mark.parametrize(("row", "column", "cell"), cells("After an action on demand"))
def test_after_an_action_on_demand(story: Story, row: str, column: str, cell: str) -> None:
    story.establish(1)
    trigger = Fleet(story.heat).trigger(**story.target, action="BACKUP")
    ((deployment, name),) = story.pending()
    assert (deployment.trigger_id, name) == (trigger.id, "BACKUP1")
    end(story, row.removeprefix("BACKUP1 "), deployment)

    def retry_target() -> None:
        story.write(lambda tx: repetition.retry(tx, story.heat.engine, deployment, "ann"))

    do = {"retry": retry_target, "update": lambda: story.update(2), "delete": lambda: delete(story)}[column]
    if row.endswith("running") and column != "retry":
        story.report(deployment)
    assert outcome(story, do) == cell


def marked(story: Story) -> dict[str, Any]:
    """Return the config with an input that requires a replacement."""
    config = story.config()
    properties = {**config["properties"], "inputs": [{"name": "v", "replace_on_change": True}]}
    return {**config, "properties": properties}


def replace_unhealthy(story: Story) -> None:
    story.write(
        lambda tx: operations.mark(tx, story.heat.engine, story.stack.id, "d", unhealthy=True, reason="it smokes")
    )
    story.update(2)


REPLACEMENTS: dict[str, Callable[[Story], None]] = {
    "another `signal_transport`, the same server": lambda story: story.update(
        d=story.definition(2, signal_transport="CFN_SIGNAL")
    ),
    "an input with `replace_on_change`, the same server": lambda story: story.update(2, config=marked(story)),
    "another name of the resource, the same config and server": lambda story: story.update(e=story.definition(2)),
    "the resource marked as unhealthy": replace_unhealthy,
    "the server's name in place of its id": lambda story: story.update(d=story.definition(1, server=story.server.name)),
}


@pytest.mark.parametrize("change", REPLACEMENTS)
def test_a_replacement_runs_after_the_removal_of_its_predecessor(story: Story, change: str) -> None:
    (cell,) = [runs for name, runs in tables()["The order of replacements"] if name == change]
    story.establish(1, **{"config": marked(story)} if "replace_on_change" in change else {})
    assert outcome(story, lambda: REPLACEMENTS[change](story)) == cell
    assert story.stack.status == "COMPLETE", story.stack.reason
    assert len(story.heat.deployments()) == 1


def two(story: Story, first: str, second: str, value: int) -> dict[str, Any]:
    """Return the resources ``a`` and ``b`` on two servers."""
    return {"a": story.definition(value, server=first), "b": story.definition(value, server=second)}


@pytest.mark.parametrize("story", ["config", "component"], indirect=True)
def test_deployments_that_exchange_their_servers(story: Story) -> None:
    (other,) = Fleet(story.heat).servers(1)
    story.stack = story.heat.create(story.template(None, **two(story, story.server.id, other.id, 1)))
    both = (story, replace(story, server=other))
    complete_all(story, both)
    story.update(**two(story, other.id, story.server.id, 2))

    runs = complete_all(story, both)
    assert runs == {story.server.id: ["DELETE1", "CREATE2"], other.id: ["DELETE1", "CREATE2"]}
    assert story.heat.settled(story.stack.id).status == "COMPLETE"


@pytest.mark.parametrize("story", ["config", "component"], indirect=True)
def test_a_deployment_that_moves_leaves_its_old_server_last(story: Story) -> None:
    (other,) = Fleet(story.heat).servers(1)
    story.create(1)
    both = (story, replace(story, server=other))
    complete_all(story, both)
    story.update(d=story.definition(2, server=other.id))

    assert story.pending() == [], "the old server keeps what it has, until the new one has it"
    assert complete_all(story, both) == {story.server.id: ["DELETE1"], other.id: ["CREATE2"]}


@pytest.mark.parametrize("story", ["config", "component"], indirect=True)
def test_another_name_of_a_server_is_another_machine(story: Story) -> None:
    (other,) = Fleet(story.heat).servers(1)
    both = (story, replace(story, server=other))
    definition = story.definition(1, server={"get_resource": "machine"})
    story.create(None, d=definition, machine=define("OS::Heat::DeployedServer", name=story.server.name))
    complete_all(story, both)
    story.update(d=definition, machine=define("OS::Heat::DeployedServer", name=other.name))
    assert complete_all(story, both) == {story.server.id: ["DELETE1"], other.id: ["CREATE1"]}


def test_a_renamed_nested_stack_is_created_after_the_removal_of_the_old_one(story: Story) -> None:
    story.files |= {f"{value}.yaml": json.dumps(story.template(value)) for value in (1, 2)}
    story.establish(None, a=define("1.yaml"))
    assert outcome(story, lambda: story.update(b=define("1.yaml"))) == "DELETE1, CREATE1"
    story.runs.clear()
    assert outcome(story, lambda: story.update(b=define("2.yaml"))) == "DELETE1, CREATE2"


def test_a_delete_runs_also_without_a_signal(story: Story) -> None:
    story.create(None, d=story.definition(1, signal_transport="NO_SIGNAL"))
    assert story.stack.status == "COMPLETE"
    assert outcome(story, story.update) == "DELETE1"


def complete_all(story: Story, stories: tuple[Story, ...]) -> dict[str, list[str]]:
    """Complete the runs of several servers, the last one first. Return the names by server."""
    runs: dict[str, list[str]] = {one.server.id: [] for one in stories}
    while waiting := [(one, *run) for one in stories for run in one.pending()]:
        one, deployment, name = waiting[-1]
        runs[one.server.id].append(name)
        story.report(deployment)
    return runs


def test_dependents_of_a_failed_deployment_do_not_run_after_suspend_and_resume(story: Story) -> None:
    dependent = story.definition(1) | {"depends_on": "d"}
    story.create(1, e=dependent)
    end(story, "failed")
    suspend_and_resume(story)
    assert story.pending() == []

    story.update(1, e=dependent)
    story.complete()
    assert (story.runs, story.stack.status) == (["CREATE1", "CREATE1"], "COMPLETE")


def test_a_check_reports_a_failed_deployment_and_leaves_it_failed(story: Story) -> None:
    story.create(1)
    end(story, "failed")
    story.write(lambda tx: operations.run_action(tx, story.heat.engine, story.stack.id, Action.CHECK))
    assert (story.stack.action, story.stack.status) == ("CHECK", "FAILED")
    assert story.heat.states(story.stack)["d"] == "CREATE_FAILED"
    assert outcome(story, lambda: story.update(1)) == "CREATE1"


def test_a_value_that_cannot_be_evaluated_repeats_the_action(story: Story) -> None:
    story.establish(1)
    text = define("OS::Heat::Value", value="a,b")
    broken = story.definition(2, input_values={"v": {"str_split": [",", {"get_attr": ["text", "value"]}, 7]}})
    story.update(d=broken, text=text)
    assert story.heat.states(story.stack)["d"] == "UPDATE_FAILED"
    assert outcome(story, lambda: story.update(2)) == "UPDATE2"


@pytest.mark.parametrize("story", ["config"], indirect=True)
def test_create_runs_once_it_is_among_the_actions(story: Story) -> None:
    story.create(1, d=story.definition(1, actions=["UPDATE"]))
    story.update(d=story.definition(2, actions=["UPDATE"]))
    end(story, "failed")
    assert outcome(story, lambda: story.update(d=story.definition(3, actions=["UPDATE"]))) == "UPDATE3"
    story.runs.clear()
    assert outcome(story, lambda: story.update(d=story.definition(4, actions=["CREATE", "UPDATE"]))) == "CREATE4"
    story.runs.clear()
    assert outcome(story, lambda: story.update(d=story.definition(5, actions=["CREATE", "UPDATE"]))) == "UPDATE5"


SETTINGS = {"name": "other", "timeout": 30, "on_interrupt": "RERUN", "check_interval": 60, "enforce": True}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_runs_nothing_and_applies_to_the_next_run(story: Story, setting: str) -> None:
    story.create(1)
    queued = story.pending()
    change = {setting: SETTINGS[setting]}
    story.update(d=story.definition(1, **change))
    assert [name for _, name in story.pending()] == [name for _, name in queued], "the run goes on"
    story.forget()
    assert outcome(story, lambda: story.update(d=story.definition(1))) == "–"
    assert outcome(story, lambda: story.update(d=story.definition(1, **change))) == "–"
    assert outcome(story, lambda: story.update(d=story.definition(2, **change))) == "UPDATE2"


@pytest.mark.parametrize("story", ["member"], indirect=True)
def test_a_group_rolls_its_members_back_with_update(story: Story) -> None:
    policy = {"rolling_update": {"max_batch_size": 1, "on_failure": "ROLLBACK"}}
    story.establish(1, d=story.definition(1) | {"update_policy": policy})
    story.update(d=story.definition(2) | {"update_policy": policy})
    end(story, "failed")
    story.complete()
    assert (story.runs, story.stack.status) == (["UPDATE1"], "FAILED")


@pytest.mark.parametrize("story", ["member"], indirect=True)
def test_members_whose_failure_a_group_tolerates_stay_failed_and_stop_no_action(story: Story) -> None:
    policy = {"batch_create": {"max_fail_percentage": 100}}
    story.create(1, d=story.definition(1) | {"update_policy": policy})
    end(story, "failed")
    assert story.stack.status == "COMPLETE"
    for act in (suspend, resume):
        act(story)
        assert (story.pending(), story.stack.status) == ([], "COMPLETE")
    assert story.current().status == "FAILED"


def enroll_again(story: Story) -> None:
    """Let the server's machine be replaced, by one that has to run everything again."""
    with story.heat.store.read() as tx:
        until = rows.to_micros(tx.now)
    repetition.create_again(story.heat.store, story.heat.engine, story.server.id, until)
    story.stack = story.heat.settled(story.stack.id)


def test_a_replaced_machine_is_created_in_the_order_of_requirements(story: Story) -> None:
    first = story.definition(1) | {"depends_on": "z"}
    story.create(1, d=first, z=story.definition(9))
    story.complete()
    story.update(d=story.definition(2) | {"depends_on": "z"}, z=story.definition(9))
    story.forget()

    assert outcome(story, lambda: enroll_again(story)) == "CREATE9, CREATE2"
    assert (story.stack.action, story.stack.status) == ("UPDATE", "COMPLETE")
    story.runs.clear()
    assert outcome(story, lambda: story.update(d=story.definition(3), z=story.definition(9))) == "UPDATE3"


def test_a_replaced_machine_does_not_run_an_update_that_waited_for_the_old_one(story: Story) -> None:
    story.establish(1)
    story.update(2)
    assert outcome(story, lambda: enroll_again(story)) == "CREATE2"


def test_a_suspended_stack_is_created_on_a_replaced_machine_by_its_next_update(story: Story) -> None:
    story.create(1)
    story.complete()
    suspend(story)
    story.forget()
    enroll_again(story)
    resume(story)
    assert (story.pending(), story.stack.status) == ([], "FAILED")
    assert outcome(story, lambda: story.update(1)) == "CREATE1"
