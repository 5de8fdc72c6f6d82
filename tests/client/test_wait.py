"""Watching a stack: what is shown on the way, and what is told at the end."""

import json
import re
import signal
import time

import pytest

from client.conftest import drawn, on_terminal
from client.site import succeed
from stoker_client import updates
from stoker_client.cli._live import Clock, LiveStack, last_output
from stoker_client.shapes import Event
from stoker_client.stacks import Operation, Snapshot, read_events, watch

TEMPLATE = "heat_template_version: 2021-04-16\n"
VALUE = f"""{TEMPLATE}
resources: {{a: {{type: OS::Heat::Value, properties: {{value: 1}}}}}}
outputs: {{url: {{value: "http://x"}}}}
"""
DEPLOYMENT = """heat_template_version: 2021-04-16
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {group: script, config: TEXT}}
  db:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: SERVER, actions: ACTIONS, signal_transport: STOKER_SIGNAL}
"""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """The stack is read again almost at once."""
    monkeypatch.setattr(updates, "FIRST", 0.01)
    monkeypatch.setattr(updates, "USUAL", 0.01)
    monkeypatch.setattr(updates, "SHARE", 0)


@pytest.fixture
def create(stoker, nowhere):
    def create(template=VALUE, *more):
        (nowhere / "web.yaml").write_text(template)
        return stoker("stack", "create", "web", "-t", "web.yaml", "--wait", *more)

    return create


def resource(name: str, status: str, reason: str = "", **more):
    return {
        "resource_name": name,
        "resource_status": status,
        "resource_status_reason": reason,
        **more,
    }


@pytest.fixture
def agent(site):
    """The agent of a server ``web1``."""
    return site.add_agent("web1")


def deployment(agent, *, actions="[CREATE, UPDATE]", text="echo"):
    """A template with a deployment ``db`` on the server of ``agent``."""
    return DEPLOYMENT.replace("SERVER", agent.id).replace("ACTIONS", actions).replace("TEXT", text)


def fail(agent, run):
    agent.finish(run["id"], 3, deploy_stderr="no space left\n")


def test_success_prints_each_change_and_the_outputs(create, site, stoker):
    result = create()

    assert result.code == 0
    told = [line.split(maxsplit=2)[2].split(maxsplit=1) for line in result.err.splitlines()]
    assert told == [
        ["web", "CREATE_IN_PROGRESS  Stack CREATE started"],
        ["a", "CREATE_IN_PROGRESS"],
        ["a", "CREATE_COMPLETE"],
        ["web", "CREATE_COMPLETE  Stack CREATE completed successfully"],
    ]
    assert result.out.splitlines()[1].split() == ["url", "http://x"]
    id_ = site.api("GET", "/stacks")["stacks"][0]["id"]
    assert stoker("stack", "delete", id_, "--yes", "--wait").code == 0
    assert site.api("GET", "/stacks")["stacks"] == []
    assert json.loads(create(VALUE, "-o", "json").out)["stack_status"] == "CREATE_COMPLETE"


NESTED = f"{TEMPLATE}resources: {{app: {{type: inner.yaml}}}}\n"


@pytest.mark.parametrize(
    ("actions", "outer", "words", "path", "end"),
    [
        ("[CREATE]", None, (), "db", "CREATE_FAILED: see `stoker deployment logs web/db`"),
        ("[CREATE]", NESTED, (), "app/db", "CREATE_FAILED: see `stoker deployment logs web/app/db`"),
        ("[CREATE]", None, ("--rollback",), "db", "ROLLBACK_COMPLETE"),
    ],
)
def test_a_failure_prints_its_path_the_server_and_the_last_line_of_stderr(
    create, site, agent, stoker, nowhere, actions, outer, words, path, end
):
    inner = deployment(agent, actions=actions)
    (nowhere / "inner.yaml").write_text(inner)
    site.act(agent, fail)

    result = create(outer or inner, *words)

    line = f"{path}: exit 3 on web1: no space left"
    assert (result.code, result.out, result.err.splitlines()[-2:]) == (1, "", [line, f"stoker: web is {end}"])
    assert line in stoker("stack", "show", "web").out


def test_a_failed_deletion_exits_with_1(site, stoker, agent):
    def act(agent, run):
        inputs = {each["name"]: each["value"] for each in run["inputs"]}
        (fail if inputs["deploy_action"] == "DELETE" else succeed)(agent, run)

    site.act(agent, act)
    site.create_stack("web", deployment(agent, actions="[CREATE, DELETE]"))

    result = stoker("stack", "delete", "web", "--yes", "--wait")

    assert result.code == 1
    assert result.err.splitlines()[-1] == "stoker: web is DELETE_FAILED: see `stoker deployment logs web/db`"


@pytest.fixture
def web(site, agent, nowhere):
    """The path of a stack whose deployment has run, and a function that writes its template with another script."""
    more = "  other: {type: OS::Heat::Value, properties: {value: 1}}\n"
    stack = site.create_stack("web", deployment(agent) + more)

    def template(text):
        (nowhere / "web.yaml").write_text(deployment(agent, text=text) + more)
        return (nowhere / "web.yaml").read_text()

    return f"/stacks/web/{stack['id']}", template


@pytest.fixture
def scripted(site, agent):
    """Acts of the agent by the script of a run; others succeed."""
    acts = {}
    site.act(agent, lambda agent, run: acts.get(run["config"], succeed)(agent, run))
    return acts


UPDATE = ("stack", "update", "web", "-t", "web.yaml", "--wait")


@pytest.mark.parametrize("is_seen", [False, True], ids=["at once", "after some polls"])
def test_a_rollback_names_its_cause_and_an_update_what_it_changes(site, stoker, scripted, web, is_seen):
    def act(agent, run):
        if is_seen:
            site.stoker.until(lambda: any("/events" in path for _, path in site.calls))
        fail(agent, run)

    path, write = web
    scripted["broken"] = act
    write("broken")
    result = stoker(*UPDATE, "--rollback")

    *changes, cause, end = result.err.splitlines()
    assert (result.code, cause) == (1, "db: exit 3 on web1: no space left")
    assert end == "stoker: web is ROLLBACK_COMPLETE"
    assert {line.split()[2] for line in changes} == {"web", "config", "db"}
    assert cause in " ".join(stoker("stack", "show", "web").out.split())
    events = site.api("GET", f"{path}/events?sort_dir=asc")["events"]
    failed = [event["resource_name"] for event in events if event["resource_status"].endswith("FAILED")]
    assert failed == ["db", "web"]


def test_a_superseded_update_fails(site, stoker, scripted, web):
    path, write = web
    scripted["two"] = lambda *_: site.api("PUT", path, {"template": three})
    three = write("three")
    write("two")
    result = stoker(*UPDATE)

    last = "stoker: web: superseded by another update (`stoker stack events web`)"
    assert (result.code, result.err.splitlines()[-1]) == (1, last)


@pytest.mark.parametrize(("words", "status"), [((), "ROLLBACK_COMPLETE"), (("--no-rollback",), "UPDATE_FAILED")])
def test_a_create_and_an_update_are_cancelled(site, stoker, scripted, web, words, status):
    path, write = web
    scripted["lasting"] = lambda *_: None
    template = write("lasting")
    site.api("PUT", path, {"template": template})
    site.api("POST", "/stacks", {"stack_name": "new", "template": template, "disable_rollback": False})
    for name, end in (("web", status), ("new", "CREATE_FAILED")):
        result = stoker("stack", "cancel", name, "--wait", *words)
        assert (result.code, result.out.splitlines()[-1]) == (0, f"stack {name} is {end}"), result


@pytest.mark.slow
def test_ctrl_c_says_that_the_operation_continues(site, agent, spawn, nowhere):
    (nowhere / "web.yaml").write_text(deployment(agent))
    process = spawn("-m", "stoker_client.cli.main", "stack", "create", "web", "-t", "web.yaml", "--wait")
    while not any("/events" in path for _, path in site.calls):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "web continues" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_list_is_drawn_on_a_terminal(site, agent, nowhere):
    (nowhere / "web.yaml").write_text(deployment(agent))
    site.act(agent, lambda agent, run: agent.log(run["id"], 0, b"installing\n"))
    with on_terminal("stack", "create", "web", "-t", "web.yaml", "--wait") as screen:
        screen.read_until(b"installing")
        agent.finish(agent.entries()[0]["id"])
        shown = screen.read_all()
        assert screen.process.stdout is not None
        out = screen.process.stdout.read().decode()

    assert screen.process.returncode == 0
    assert re.search(r"▶ db  .* installing", shown)
    assert "1 of 2" in shown
    assert "\x1b[1A" in shown
    assert "CREATE_COMPLETE" in out


# The live view


def snapshot(status: str, *resources, name: str = "web") -> Snapshot:
    return Snapshot(f"{name}/i", status, resources=resources)


def test_the_view_shows_what_failed_and_what_runs_with_a_bar(console):
    view = LiveStack(console)
    rows = (
        resource("done", "CREATE_COMPLETE"),
        resource("busy", "CREATE_IN_PROGRESS", deployment={"last_log": "says\x1b[2J hello"}),
        resource("bad", "CREATE_FAILED", "it\nbroke"),
        resource("later", "INIT_COMPLETE"),
    )
    view.update(snapshot("CREATE_IN_PROGRESS", *rows))

    head, bar, *shown, rest = [" ".join(line.split()) for line in drawn(view, console)]

    assert re.fullmatch(r"web CREATE_IN_PROGRESS( 0\.\d s)?", head)
    assert bar.endswith("1 of 4")
    assert re.fullmatch(r"✗ bad it broke", shown[0])
    assert re.fullmatch(r"▶ busy (0\.\d s )?says\\x1b\[2J hello", shown[1])
    assert rest == "1 complete, 1 waiting"

    view.update(snapshot("CREATE_FAILED", *rows[:1], *rows[2:]))

    assert [" ".join(line.split()[:2]) for line in drawn(view, console)] == ["web CREATE_FAILED", "✗ bad"]


def test_deleted_resources_count_as_done_and_an_update_has_no_bar(console):
    view = LiveStack(console)
    assert drawn(view, console) in ([], [""])
    view.update(snapshot("DELETE_IN_PROGRESS", *(resource(name, "CREATE_COMPLETE") for name in "abc")))
    view.update(snapshot("DELETE_IN_PROGRESS", resource("a", "DELETE_IN_PROGRESS")))
    assert drawn(view, console)[1].split()[-3:] == ["2", "of", "3"]

    view = LiveStack(console)
    view.update(snapshot("UPDATE_IN_PROGRESS", resource("a", "CREATE_COMPLETE")))
    assert [line.split()[:2] for line in drawn(view, console)] == [["web", "UPDATE_IN_PROGRESS"], ["1", "complete"]]


def test_the_view_fits_the_screen(console):
    view = LiveStack(console)
    running = [resource(f"r{i}", "CREATE_IN_PROGRESS", deployment={"last_log": "x" * 500}) for i in range(500)]
    view.update(snapshot("CREATE_IN_PROGRESS", *running))

    lines = drawn(view, console)

    assert len(lines) < console.height
    assert lines[-1].startswith("485 more")


@pytest.mark.parametrize(
    ("statuses", "times"),
    [
        # grows only while in progress
        ([(0, "CREATE_IN_PROGRESS"), (2, "CREATE_IN_PROGRESS"), (5, "CREATE_COMPLETE"), (9, None)], [0, 2, 5, 5]),
        # excludes waiting for other resources
        ([(0, "INIT_COMPLETE"), (10, "CREATE_COMPLETE")], [0, 0]),
        # restarts with the next action
        (
            [(0, "CREATE_COMPLETE"), (10, "UPDATE_IN_PROGRESS"), (12, "UPDATE_COMPLETE"), (20, None)],
            [0, 0, 2, 2],
        ),
    ],
)
def test_the_duration_of_an_action(statuses, times):
    now = [0.0]
    clock = Clock(lambda: now[0])
    elapsed = []
    for moment, status in statuses:
        now[0] = moment
        if status:
            clock.see("a", status)
        elapsed.append(clock.elapsed("a"))

    assert elapsed == times


@pytest.mark.parametrize(
    ("log", "reason", "words"),
    [
        ("one\ntwo\n\n", None, "two"),
        ("half", "Running", "half"),
        ("a\n  b  \n\n", None, "b"),
        ("\n", "Running", "Running"),
        (None, "Waiting for the agent", "Waiting for the agent"),
        (None, None, ""),
    ],
)
def test_the_last_output_is_read_from_the_resource(log, reason, words):
    shown = {"last_log": log, "status_reason": reason}
    assert last_output(resource("a", "CREATE_IN_PROGRESS", deployment=shown)) == words


# The events of an operation


def events(*statuses: str) -> list[Event]:
    """Events of the stack ``web/i``, and after a colon those of its resource ``d``."""
    return [
        Event(
            id=str(number),
            event_time="",
            resource_name="d" if status.startswith(":") else "web",
            resource_status=status.removeprefix(":"),
            physical_resource_id="x" if status.startswith(":") else "i",
        )
        for number, status in enumerate(statuses)
    ]


BEGIN, DONE = "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"
ROLLBACK = ("ROLLBACK_IN_PROGRESS", ":UPDATE_COMPLETE", "ROLLBACK_COMPLETE")


@pytest.mark.parametrize(
    ("statuses", "own", "status", "superseded_by"),
    [
        ((BEGIN,), 1, BEGIN, None),
        ((BEGIN, ":UPDATE_COMPLETE", DONE), 3, DONE, None),
        ((BEGIN, ":UPDATE_FAILED", "UPDATE_FAILED", *ROLLBACK), 6, "ROLLBACK_COMPLETE", None),
        ((BEGIN, *ROLLBACK), 4, "ROLLBACK_COMPLETE", None),
        ((BEGIN, BEGIN, DONE), 1, BEGIN, "UPDATE"),
        ((BEGIN, "DELETE_IN_PROGRESS", "DELETE_COMPLETE"), 1, BEGIN, "DELETE"),
        ((BEGIN, "ROLLBACK_IN_PROGRESS", BEGIN), 2, "ROLLBACK_IN_PROGRESS", "UPDATE"),
        ((BEGIN, DONE, BEGIN, "UPDATE_FAILED"), 2, DONE, None),
        ((), 0, "", None),
    ],
)
def test_the_events_of_an_operation_end_before_the_next_one(statuses, own, status, superseded_by):
    snapshot = read_events("web/i", events(*statuses))
    assert (len(snapshot.events), snapshot.status, snapshot.superseded_by) == (own, status, superseded_by)


def test_the_events_of_an_earlier_operation_are_not_read(site, agent, client):
    site.act(agent, lambda agent, run: agent.finish(run["id"], int(run["config"] == "fail")))
    stack = site.create_stack("web", deployment(agent))
    ref = f"web/{stack['id']}"

    def update(text):
        body = {"template": deployment(agent, text=text), "disable_rollback": False}
        operation = client.stacks.update(ref, body, existing=False)
        *_, last = watch(client.stacks, operation, with_resources=False)
        return operation, last

    failed, rolled_back = update("fail")
    assert rolled_back.status == "ROLLBACK_COMPLETE"
    last, _ = update("other")

    events = site.api("GET", f"/stacks/{ref}/events?sort_dir=asc")["events"]
    ids = [event["id"] for event in events]
    [rollback] = [event["id"] for event in events if event["resource_status"] == "ROLLBACK_IN_PROGRESS"]
    for id_ in (failed.id, rollback):  # the service names the rollback if the update has failed at once
        read = client.stacks.operation_events(Operation(ref, id_))
        assert [event["id"] for event in read] == ids[ids.index(failed.id) :]
    assert [event["id"] for event in client.stacks.operation_events(Operation(ref))] == ids[ids.index(last.id) :]
