"""Triggers, schedules, policies and the audit log on the command line."""

from __future__ import annotations

import pytest

from client.story import DROP, END, Raw, Say, Story, TriggerStory, target, trigger
from stoker_client.collection import ReadOnlyCollection
from support.http_stub import Said

pytestmark = pytest.mark.slow

GONE = "0" * 32
TIME = "2031-05-06T07:08:09Z"


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(ReadOnlyCollection, "page_size", 2)


def add_triggers(site, count: int, **more) -> list[str]:
    """The ids of new triggers."""
    agent = site.find_agent("db1")
    config = site.account.create_config(name="database")
    body = {"config_id": config, "servers": [agent.id], "name": "database BACKUP", **more}
    return [site.account.create("software_triggers", **body)["id"] for _ in range(count)]


def test_list_reads_all_pages_and_selects(site, stoker, short_pages):
    ids = add_triggers(site, 5)[::-1]
    [other] = add_triggers(site, 1, name="100% of_DISKS")
    user = site.api("GET", f"/software_triggers/{other}")["software_trigger"]["requested_by"]

    for words, selected in (
        ((), [other, *ids]),
        (("--limit", "3"), [other, *ids[:2]]),
        (("--status", "failed"), []),
        (("--contains", "0% OF_"), [other]),
        (("--contains", "backup"), ids),
        (("--contains", "database_"), []),
        (("--by", user), [other, *ids]),
        (("--by", "nobody"), []),
    ):
        assert [each["id"] for each in stoker("trigger", "list", *words, "-o", "json").data] == selected, words
    assert "database BACKUP" in stoker("trigger", "list").out


def test_show_prints_every_server(site, stoker):
    story = TriggerStory(site)
    first, second = story.targets
    run = {"state": "RUNNING", "percent": 40, "message": "half way", "status_code": None}
    first.update(status="IN_PROGRESS", run=run)
    second.update(
        status="FAILED", status_reason="no space",
        run={"status_code": 3, "start_time": "2031-05-06T07:08:09Z", "end_time": "2031-05-06T07:08:11Z"},
    )  # fmt: skip
    shown = stoker("trigger", "show", story.id)

    rows = [line.split() for line in shown.out.splitlines()]
    assert ["db1", "RUNNING", "40", first["deployment_id"], "half", "way"] in rows
    assert ["db2", "FAILED", "3", "2.0", second["deployment_id"], "no", "space"] in rows
    data = stoker("trigger", "show", story.id, "-o", "json").data
    assert (data["targets"], data["queued"]) == (story.targets, 2)


@pytest.fixture
def databases(site):
    """A trigger of two deployments on one server, both complete, and one on another server."""
    story = TriggerStory(site, servers=("db1", "db1", "db2"), status="COMPLETE", queued=0, complete=3)
    for resource, found in zip(("a", "b", "a"), story.targets, strict=True):
        values = {"size": f"5 {resource}", "deploy_stdout": "x", "deploy_status_code": 0}
        run = {"status_code": 0, "output_values": values}
        found.update(resource_name=resource, status="COMPLETE", status_reason="Outputs received", run=run)
    return story


def write(agent, data: bytes, stream: str = "stdout", offset: int = 0) -> None:
    """Output of the only run of a server."""
    [run] = agent.entries()
    assert agent.log(run["id"], offset, data, stream).status == 200


def test_several_deployments_on_a_server_have_different_names(databases, stoker):
    agent = databases.agents["db1"]
    databases.targets[1]["deployment_id"] = databases.site.deploy(agent)["id"]
    id_, (a, b, other) = databases.id, [each["deployment_id"] for each in databases.targets]
    rows = [line.split() for line in stoker("trigger", "show", id_).out.splitlines()]
    targets = (("db1/a", a, "a"), ("db1/b", b, "b"), ("db2", other, "a"))
    assert [row for row in rows if row and row[0].startswith("db")] == [
        *([name, "COMPLETE", "0", deployment, "size=5", text] for name, deployment, text in targets),
        *([name, "size", "5", text] for name, _, text in targets),
    ]
    for run in agent.entries():
        agent.log(run["id"], 0, b"hi\n")
    assert stoker("trigger", "logs", id_).out == "db1/a | hi\ndb1/b | hi\n"

    lines = "".join(f"{name}\tsize\t5 {text}\n" for name, _, text in targets)
    assert stoker("trigger", "outputs", id_, "-o", "value").out == lines
    first, *_ = stoker("trigger", "outputs", id_, "size", "-o", "json").data
    assert [first[key] for key in ("server", "output", "value", "deployment_id")] == ["db1/a", "size", "5 a", a]
    missing = stoker("trigger", "outputs", id_, "sise")
    assert (missing.code, "has no output 'sise'; it has: size" in missing.err) == (1, True)


def test_a_name_means_the_last_retry(site, stoker):
    [first] = add_triggers(site, 1, name="patch")

    def end(id_):
        agent = site.agents["db1"]
        for run in agent.entries():
            agent.finish(run["id"], 1)

    def retry(id_):
        end(id_)
        return site.api("POST", f"/software_triggers/{id_}/retry", {})["software_trigger"]["id"]

    second, third = retry(first), retry(first)
    last = retry(second)
    assert stoker("trigger", "show", "patch", "-o", "json").data["id"] == last
    end(third)
    for id_ in (first, third):
        site.api("DELETE", f"/software_triggers/{id_}")
    assert stoker("trigger", "show", "patch", "-o", "json").data["id"] == last
    add_triggers(site, 1, name="patch")
    ambiguous = stoker("trigger", "show", "patch")
    assert (ambiguous.code, "2 triggers are named 'patch'" in ambiguous.err) == (2, True)


def test_cancel_retry_and_delete_send_their_requests(site, stoker):
    [id_] = add_triggers(site, 1)
    path = f"/software_triggers/{id_}"

    assert stoker("trigger", "cancel", id_).code == 0
    assert site.bodies[-1] == ("POST", f"{path}/cancel", {"force": False})
    refused = stoker("trigger", "delete", "--yes", id_)
    assert (refused.code, "cancel it first" in refused.err) == (5, True)
    assert stoker("trigger", "cancel", id_, "--force").code == 0
    assert site.bodies[-1] == ("POST", f"{path}/cancel", {"force": True})
    assert stoker("trigger", "retry", id_, "-o", "json").data["id"] != id_
    assert site.bodies[-1] == ("POST", f"{path}/retry", {"only_failed": True})
    stoker("trigger", "retry", "--all", id_)
    assert site.bodies[-1] == ("POST", f"{path}/retry", {"only_failed": False})
    both = stoker("trigger", "delete", "--yes", "nope", id_)
    listed = [each["id"] for each in site.api("GET", "/software_triggers")["software_triggers"]]
    assert (both.code, id_ in listed) == (4, False)
    assert "`stoker trigger list`" in both.err


def test_all_triggers_are_cancelled_before_the_first_wait(site, stoker):
    end = [target(0, "CANCELLED"), trigger("CANCELLED", cancelled=1), END]
    one, two = TriggerStory(site, *end, servers=("db1",)), TriggerStory(site, *end, servers=("db2",))

    result = stoker("trigger", "cancel", one.id, GONE, two.id, "--wait")

    assert (result.code, result.err.count(f"({GONE}) could not be found")) == (4, 1)
    assert one.steps == two.steps == []
    verbs = [verb for verb, path in site.calls if "/software_triggers/" in path or "/events" in path]
    assert verbs[:3] == ["POST"] * 3
    assert [path for _, path in site.calls if "/events" in path] == [
        f"/events?subject=trigger%3A{story.id}" for story in (one, two)
    ]


# logs


def chunk(seq: int, stream: str, data: str, **more):
    return {"seq": seq, "stream": stream, "data": data, "time": TIME, **more}


def log(story, name: str, one) -> Say:
    return Say("log", {"server_id": story.agents[name].id, "server_name": name, **one}, one["seq"])


def test_logs_of_one_server_are_printed_unchanged(site, stoker):
    [id_] = add_triggers(site, 1)
    agent = site.agents["db1"]
    write(agent, b"a\nb")
    write(agent, b"oh", "stderr")
    write(agent, b"c\n", offset=3)

    result = stoker("trigger", "logs", id_)

    assert (result.code, result.out, result.err) == (0, "a\nbc\n", "oh")
    assert stoker("trigger", "logs", id_, "--stream", "stderr").out == ""
    chunks = stoker("trigger", "logs", id_, "-o", "json").data
    assert [each["data"] for each in chunks] == ["a\nb", "oh", "c\n"]


def test_logs_of_several_servers_have_a_prefix_on_each_line(site, stoker):
    story = TriggerStory(site)
    write(story.agents["db1"], b"a\nb")
    write(story.agents["db1"], b"c\nrest", offset=3)
    write(story.agents["db2"], b"oh\n", "stderr")

    result = stoker("trigger", "logs", story.id)

    assert (result.out, result.err) == ("db1 | a\ndb1 | bc\ndb1 | rest\n", "db2 | oh\n")
    assert stoker("trigger", "logs", story.id, "--server", "db1").out == "a\nbc\nrest"
    assert "does not run on a server 'db9'" in stoker("trigger", "logs", story.id, "--server", "db9").err


def test_logs_are_followed(site, stoker):
    for words, output in ((), "db1 | one\ndb2 | other\ndb1 | two\n"), (("--server", "db2"), "other\n"):
        story = TriggerStory(site)
        story.steps = [
            log(story, "db1", chunk(3, "stdout", "one\n")),
            target(0, "IN_PROGRESS"),
            log(story, "db2", chunk(4, "stdout", "other\n")),
            log(story, "db1", chunk(8, "stdout", "two\n")),
            trigger("COMPLETE"),
            END,
        ]

        result = stoker("trigger", "logs", "--follow", story.id, *words)

        assert (result.code, result.out) == (0, output)


# deployments


@pytest.fixture
def agent(site):
    """The silent agent of a server."""
    return site.add_agent("web1")


@pytest.fixture
def deployed(site, agent):
    """The id of a deployment on the server."""
    return site.deploy(agent)["id"]


def tell(site, deployed, *steps):
    return Story(site, f"deployment:{deployed}", *steps)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), ("headtail", "estoker: 1000 bytes of the stdout were not kept here\n")),
        (("--since", TIME), ("tail", "e")),
    ],
)
def test_discarded_output_is_mentioned_but_not_what_was_not_requested(site, stoker, deployed, words, shown):
    tell(
        site,
        deployed,
        Say("log", chunk(1, "stdout", "head", offset=0, size=4, time="2031-05-06T07:08:08Z"), 1),
        Say("log", chunk(2, "stderr", "e", offset=0, size=1), 2),
        Say("log", chunk(3, "stdout", "tail", offset=1004, size=4), 3),
        END,
    )

    result = stoker("deployment", "logs", "--follow", deployed, *words)

    assert (result.out, result.err) == shown


def test_following_a_deployment_resumes_after_the_last_event(site, stoker, deployed):
    story = tell(
        site,
        deployed,
        Say("log", chunk(4, "stdout", "one "), 4),
        Say("progress", {"percent": 3}),
        Raw(b'id: 5\nevent: log\ndata: {"seq": 5, "str'),
        DROP,
        Say("log", chunk(5, "stdout", "two\n"), 5),
        Raw(b""),  # what ends a stream as it should end, though it is not over
        DROP,
        Say("end", {"status": "COMPLETE"}),
    )

    result = stoker("deployment", "logs", "-f", deployed)

    assert (result.code, result.out) == (0, "one two\n")
    assert story.last_ids == ["", "4", "5"]


CHANGES = [
    {
        "item": "/etc/motd",
        "outcome": "changed",
        "diff": "--- /etc/motd\n+++ /etc/motd\n@@ -1 +1 @@\n-old: 'x'\n+new: \"y\"",
    },
    {"item": "nginx", "outcome": "changed", "diff": "absent → 1.2"},
]


def test_the_history_lists_runs(site, stoker, agent, deployed):
    agent.finish(agent.entries()[0]["id"], 3)
    site.api("POST", f"/software_deployments/{deployed}/retry", {})
    agent.finish(agent.entries()[0]["id"], 0, deploy_changed=True, deploy_changes=CHANGES)
    runs = site.api("GET", f"/software_deployments/{deployed}/runs")["runs"]

    words = ("-o", "value", "-c", "number", "-c", "action", "-c", "status", "-c", "status_code", "-c", "requested_by")
    name = site.account.name
    assert stoker("deployment", "history", deployed, *words).out.splitlines() == [
        f"2\tCREATE\tCOMPLETE\t0\t{name}", f"1\tCREATE\tFAILED\t3\t{name}"
    ]  # fmt: skip
    listed = stoker("deployment", "history", deployed, "-o", "json").data
    assert [(each["number"], each["changes"]) for each in listed] == [(2, CHANGES), (1, [])]
    assert stoker("deployment", "history", deployed, "1", "-o", "json").data == listed[1] == runs[1]
    missing = stoker("deployment", "history", deployed, "7")
    assert (missing.code, missing.err) == (4, f"stoker: deployment {deployed} has no run 7; it has: 2, 1\n")

    lines = stoker("deployment", "history", deployed, "2").out.splitlines()
    first = next(number for number, line in enumerate(lines) if "changed: /etc/motd" in line)
    assert [line.strip() for line in lines[first + 1 : first + 7]] == [
        *CHANGES[0]["diff"].splitlines(),
        "changed: nginx: absent → 1.2",
    ]


def test_a_deployment_is_cancelled_and_retried(site, stoker, agent, deployed):
    write(agent, b"a lot")
    assert stoker("deployment", "cancel", deployed, "--force", "--wait").code == 0
    assert site.bodies[-1][2] == {"force": True}
    again = stoker("deployment", "cancel", deployed)
    assert (again.code, again.err.count("\n")) == (5, 1)
    assert stoker("deployment", "retry", deployed).code == 0
    refused = stoker("deployment", "retry", deployed)
    assert (refused.code, refused.err.count("\n")) == (5, 1)
    agent.finish(agent.entries()[-1]["id"], 1)
    site.act(agent, lambda agent, run: agent.finish(run["id"], 1, deploy_stderr="oh no\n"))
    waited = stoker("deployment", "retry", deployed, "--wait")
    assert (waited.code, "oh no" in waited.err) == (1, True)
    other = site.deploy(agent)["id"]
    site.stoker.until(lambda: site.deployment(other)["status"] == "FAILED")
    both = stoker("deployment", "retry", deployed, other, "--wait")
    assert both.out.splitlines() == [f"deployment {id_} runs again" for id_ in (deployed, other)]
    streams = [path for _, path in site.calls if "/logs" in path or "/events" in path]
    assert len(streams) == 4
    assert all(path.endswith("&events=status") for path in streams), "a wait reads no log"


def test_a_retry_that_runs_later_is_not_awaited(site, stoker, agent, deployed):
    agent.finish(agent.entries()[0]["id"], 1)
    later = Said(202, {"software_deployment": site.deployment(deployed)})
    site.replace("POST", f"/software_deployments/{deployed}/retry", later)

    result = stoker("deployment", "retry", deployed)
    assert (result.code, "runs again when its stack has repeated what it requires" in result.out) == (0, True)
    result = stoker("deployment", "retry", deployed, "--wait")
    assert (result.code, "wait for its stack" in result.err) == (1, True)


# schedules and the audit log


COMPONENT = """
heat_template_version: 2021-04-16
resources:
  component:
    type: OS::Heat::SoftwareComponent
    properties: {inputs: [{name: a, default: x}], configs: [{actions: [BACKUP], tool: script, config: echo}]}
  database:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: component}, server: SERVER, signal_transport: STOKER_SIGNAL}
"""


def test_a_schedule_is_created_changed_and_deleted(site, stoker):
    site.create_stack("app", COMPONENT.replace("SERVER", site.find_agent("db1").id))
    policy = {"maintenance_windows": [{"cron": "0 2 * * *", "minutes": 120}]}
    site.api("PATCH", "/servers/db1", {"labels": {"role": "db"}, "policy": policy})
    words = ("app", "database", "BACKUP", "--label", "role=db", "--name", "nightly")
    more = ("--cron", "30 2 * * *", "--require-window", "--disabled")
    schedule = stoker("schedule", "create", *words, *more, "-o", "json").data

    assert "nightly" in stoker("schedule", "list").out
    assert stoker("schedule", "show", "nightly", "-o", "json").data == schedule
    assert stoker("schedule", "set", "nightly", "--enable", "--any-time", "-o", "json").data["enabled"] is True
    assert site.bodies[-1][2] == {"enabled": True, "require_window": False}
    assert stoker("schedule", "delete", "--yes", "nightly").code == 0
    assert "`stoker schedule list`" in stoker("schedule", "show", "nightly").err


def test_the_audit_log_is_listed(site, stoker, short_pages):
    for name in ("db1", "other"):
        site.add_agent(name)
        site.api("PATCH", f"/servers/{name}", {"labels": {"a": "b"}})

    def listed(*words):
        return [each["id"] for each in stoker("audit", "list", *words, "-o", "json").data]

    ids = listed()
    entries = site.api("GET", "/audit")["audit"]
    assert len(ids) > 4
    assert ids == [each["id"] for each in entries]
    assert listed("--server", "db1") == [each["id"] for each in entries if each["server_name"] == "db1"]
    assert listed("--limit", "3") == ids[:3]
    shown = stoker("audit", "list", "-o", "value", "-c", "server", "-c", "action", "-c", "id").out.splitlines()
    assert shown == [f"{each['server_name'] or ''}\t{each['action']}\t{each['id']}" for each in entries]
