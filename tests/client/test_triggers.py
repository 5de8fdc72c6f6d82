"""Triggers, schedules, policies and the audit log on the command line."""

from __future__ import annotations

import json

import pytest

from client import little_heat
from client.little_answers import deployment_of
from client.little_heat import TIME, LittleHeat
from client.little_story import DROP, END, Raw, Say, target, trigger
from stoker_client import collection

pytestmark = pytest.mark.slow

GONE = "0" * 32


def said(heat):
    """The last body that was sent."""
    return heat.bodies[-1][2]


def made(result):
    assert result.code == 0, result.err
    return json.loads(result.out)


# what is sent


@pytest.mark.parametrize("verb", [(), ("create",), ("--",)])
def test_a_resource_of_a_stack_is_triggered(heat, stoker, verb):
    result = stoker("trigger", *verb, "app", "database", "BACKUP")

    assert result.code == 0, result.err
    assert said(heat) == {"stack": "app", "resource": "database", "action": "BACKUP"}
    assert "database BACKUP" in result.out


def test_options_may_come_first_and_anywhere(heat, stoker):
    result = stoker("trigger", "--on", "db1", "app", "-i", "a=b=c", "database", "--on", "db2")

    assert result.code == 0, result.err
    assert said(heat) == {
        "stack": "app",
        "resource": "database",
        "servers": ["db1", "db2"],
        "input_values": {"a": "b=c"},
    }


def test_all_options_are_sent(heat, stoker, nowhere):
    (nowhere / "key").write_text("secret\n")

    more = (
        "--allow-undeclared",
        "--max-concurrent",
        "5",
        "--max-fail-percentage",
        "0",
        "--canary",
        "10%",
        "--timeout",
        "60",
        "--signal-transport",
        "NO_SIGNAL",
    )
    words = ("--label", "role=db", "--label", "site=b", "--input-file", "key=key", "--name", "n", "--require-window")
    made(stoker("trigger", "app", "database", "BACKUP", *words, *more, "-o", "json"))

    assert said(heat) == {
        "stack": "app",
        "resource": "database",
        "action": "BACKUP",
        "selector": "role=db and site=b",
        "input_values": {"key": "secret\n"},
        "allow_undeclared": True,
        "name": "n",
        "require_window": True,
        "max_concurrent": 5,
        "max_fail_percentage": 0,
        "canary": "10%",
        "timeout": 60,
        "signal_transport": "NO_SIGNAL",
    }


def test_a_config_by_name_and_a_deployment_are_triggered(heat, stoker):
    config = heat.create_config({"name": "setup", "group": "script"})["software_config"]

    assert stoker("trigger", "--config", "setup", "--on", "db1").code == 0
    assert said(heat) == {"config_id": config["id"], "servers": ["db1"]}
    assert stoker("trigger", "create", "--deployment", "0" * 32, "BACKUP").code == 0
    assert said(heat) == {"deployment_id": "0" * 32, "action": "BACKUP"}


def test_a_stack_may_have_the_name_of_a_command(heat, stoker):
    assert stoker("trigger", "create", "list", "database").code == 0
    assert said(heat) == {"stack": "list", "resource": "database"}
    assert stoker("trigger", "--", "show", "database").code == 0
    assert said(heat) == {"stack": "show", "resource": "database"}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["app"], "name a resource: `stoker trigger app RESOURCE`"),
        (["--on", "x"], "say what shall run"),
        (["app", "r", "A", "B"], "nothing to take 'B' for"),
        (["app", "r", "--config", "c", "--on", "x"], "say what shall run once"),
        (["--config", "c", "--deployment", "d", "--on", "x"], "say what shall run once"),
        (["--config", "c"], "--on or --label"),
        (["app", "r", "--on", "x", "--label", "a=b"], "either with --on or with --label"),
        (["app", "r", "-i", "x"], "'x' is not NAME=VALUE"),
        (["app", "r", "--max-concurrent", "0"], "--max-concurrent"),
    ],
)
def test_usage_errors_send_no_request(heat, stoker, words, complaint):
    result = stoker("trigger", *words)

    assert result.code == 2
    assert complaint in result.err
    assert heat.calls == []


def test_an_error_of_the_service_is_one_line(heat, stoker):
    result = stoker("trigger", "app", "unknown", "BACKUP")

    assert (result.code, result.err) == (
        4,
        "stoker: The Resource (unknown) could not be found.\n",
    )


# looking and changing


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(collection, "PAGE", 2)


def asked(heat, path: str) -> int:
    """How often, until now."""
    return sum(where.partition("?")[0] == path for _, where in heat.calls)


def test_list_reads_all_pages(heat, stoker, short_pages):
    ids = [heat.add_trigger("db1")["id"] for _ in range(5)][::-1]

    assert [each["id"] for each in made(stoker("trigger", "list", "-o", "json"))] == ids
    assert [each["id"] for each in made(stoker("trigger", "list", "--limit", "3", "-o", "json"))] == ids[:3]
    assert made(stoker("trigger", "list", "--status", "failed", "-o", "json")) == []
    assert "database BACKUP" in stoker("trigger", "list").out


def test_show_prints_every_server(heat, stoker):
    known = heat.add_trigger("db1", "db2")
    run = {"state": "RUNNING", "percent": 40, "message": "half way", "status_code": None}
    known["targets"][0].update(status="IN_PROGRESS", run=run)
    known["targets"][1].update(
        status="FAILED", status_reason="no space",
        run={"status_code": 3, "start_time": "2031-05-06T07:08:09Z", "end_time": "2031-05-06T07:08:11Z"},
    )  # fmt: skip
    shown = stoker("trigger", "show", known["id"])

    rows = [line.split() for line in shown.out.splitlines()]
    assert ["db1", "RUNNING", "40", deployment_of("db1"), "half", "way"] in rows
    assert ["db2", "FAILED", "3", "2.0", deployment_of("db2"), "no", "space"] in rows
    assert made(stoker("trigger", "show", known["id"], "-o", "json")) == known


def add_databases(heat):
    """A trigger of two deployments on one server, both complete, and one on another server."""
    known = heat.add_trigger("db1", "db1", "db2", status="COMPLETE", queued=0, complete=3)
    for resource, found in zip(("a", "b", "a"), known["targets"], strict=True):
        values = {"size": f"5 {resource}", "deploy_stdout": "x", "deploy_status_code": 0}
        run = {"status_code": 0, "output_values": values}
        found.update(resource_name=resource, status="COMPLETE", status_reason="Outputs received", run=run)
    return known


def test_several_deployments_on_a_server_have_different_names(heat, stoker):
    known = add_databases(heat)
    rows = [line.split() for line in stoker("trigger", "show", known["id"]).out.splitlines()]
    assert ["db1/a", "COMPLETE", "0", deployment_of("db1"), "size=5", "a"] in rows
    assert ["db1/b", "COMPLETE", "0", deployment_of("db1"), "size=5", "b"] in rows
    assert ["db2", "COMPLETE", "0", deployment_of("db2"), "size=5", "a"] in rows
    written(heat, "db1", chunk(1, "stdout", "hi\n"))
    assert stoker("trigger", "logs", known["id"]).out == "db1/a | hi\ndb1/b | hi\n"


def test_outputs_are_shown_for_each_target(heat, stoker):
    known = add_databases(heat)
    rows = [line.split() for line in stoker("trigger", "show", known["id"]).out.splitlines()]
    assert [row for row in rows if row[1:2] == ["size"]] == [
        ["db1/a", "size", "5", "a"],
        ["db1/b", "size", "5", "b"],
        ["db2", "size", "5", "a"],
    ]
    assert stoker("trigger", "outputs", known["id"], "-o", "value").out == (
        "db1/a\tsize\t5 a\ndb1/b\tsize\t5 b\ndb2\tsize\t5 a\n"
    )
    first, *_ = made(stoker("trigger", "outputs", known["id"], "size", "-o", "json"))
    assert (first["server"], first["output"], first["value"], first["deployment_id"]) == (
        "db1/a",
        "size",
        "5 a",
        deployment_of("db1"),
    )
    missing = stoker("trigger", "outputs", known["id"], "sise")
    assert (missing.code, "has no output 'sise'; it has: size" in missing.err) == (1, True)


def test_a_name_means_the_last_retry(heat, stoker):
    def add(**more):
        return heat.add_trigger("db1", **{"name": "patch", "status": "FAILED", **more})["id"]

    first = add()
    second = add(source={"retry_of": first})
    third = add(source={"retry_of": first})
    last = add(source={"retry_of": second})
    assert made(stoker("trigger", "show", "patch", "-o", "json"))["id"] == last
    del heat.triggers[first], heat.triggers[third]
    assert made(stoker("trigger", "show", "patch", "-o", "json"))["id"] == last
    add()
    ambiguous = stoker("trigger", "show", "patch")
    assert (ambiguous.code, "2 triggers are named 'patch'" in ambiguous.err) == (2, True)


def test_cancel_retry_and_delete_send_their_requests(heat, stoker):
    known = heat.add_trigger("db1")
    path = f"/software_triggers/{known['id']}"

    assert stoker("trigger", "cancel", known["id"]).code == 0
    assert heat.bodies[-1] == ("POST", f"{path}/cancel", {})
    assert stoker("trigger", "cancel", known["id"], "--force").code == 0
    assert heat.bodies[-1] == ("POST", f"{path}/cancel", {"force": True})
    refused = stoker("trigger", "delete", "--yes", known["id"])
    assert (refused.code, "cancel it first" in refused.err) == (5, True)
    known["status"] = "FAILED"
    assert made(stoker("trigger", "retry", known["id"], "-o", "json"))["id"] != known["id"]
    assert heat.bodies[-1] == ("POST", f"{path}/retry", {"only_failed": True})
    stoker("trigger", "retry", "--all", known["id"])
    assert heat.bodies[-1] == ("POST", f"{path}/retry", {"only_failed": False})
    both = stoker("trigger", "delete", "--yes", "nope", known["id"])
    assert (both.code, known["id"] in heat.triggers) == (4, False)
    assert "`stoker trigger list`" in both.err


def test_cancel_may_wait_for_the_end(heat, stoker):
    known = heat.add_trigger("db1")
    heat.story = [target(0, "CANCELLED"), trigger("CANCELLED", cancelled=1), END]

    assert stoker("trigger", "cancel", known["id"], "--wait").code == 0
    assert heat.story == []


def test_all_triggers_are_cancelled_before_the_first_wait(heat, stoker):
    one, two = heat.add_trigger("db1"), heat.add_trigger("db2")
    end = [target(0, "CANCELLED"), trigger("CANCELLED", cancelled=1), END]
    heat.story = [*end, DROP, *end]

    result = stoker("trigger", "cancel", one["id"], GONE, two["id"], "--wait")

    assert (result.code, result.err.count(f"({GONE}) could not be found")) == (4, 1)
    assert heat.story == []
    steps = [(verb, path.rpartition("/")[2]) for verb, path in heat.calls if "/software_triggers/" in path]
    assert [verb for verb, _ in steps[:3]] == ["POST"] * 3
    assert [last for _, last in steps].count("events") == 2


# logs


def chunk(seq: int, stream: str, data: str, **more):
    return {"seq": seq, "stream": stream, "data": data, "time": TIME, **more}


def written(heat, name: str, *chunks):
    heat.deployments[deployment_of(name)]["log"].extend(chunks)


def log(heat, name: str, one) -> Say:
    server = next(each for each in heat.servers.values() if each["name"] == name)
    return Say("log", {"server_id": server["id"], "server_name": name, **one}, one["seq"])


def test_logs_of_one_server_are_printed_unchanged(heat, stoker):
    known = heat.add_trigger("db1")
    written(heat, "db1", chunk(1, "stdout", "a\nb"), chunk(2, "stderr", "oh"), chunk(3, "stdout", "c\n"))

    result = stoker("trigger", "logs", known["id"])

    assert (result.code, result.out, result.err) == (0, "a\nbc\n", "oh")
    assert stoker("trigger", "logs", known["id"], "--stream", "stderr").out == ""
    assert [each["seq"] for each in made(stoker("trigger", "logs", known["id"], "-o", "json"))] == [1, 2, 3]


def test_logs_of_several_servers_have_a_prefix_on_each_line(heat, stoker):
    known = heat.add_trigger("db1", "db2")
    written(heat, "db1", chunk(1, "stdout", "a\nb"), chunk(2, "stdout", "c\nrest"))
    written(heat, "db2", chunk(1, "stderr", "oh\n"))

    result = stoker("trigger", "logs", known["id"])

    assert (result.out, result.err) == ("db1 | a\ndb1 | bc\ndb1 | rest\n", "db2 | oh\n")
    assert stoker("trigger", "logs", known["id"], "--server", "db1").out == "a\nbc\nrest"
    assert "does not run on a server 'db9'" in stoker("trigger", "logs", known["id"], "--server", "db9").err


def test_following_logs_continues_after_a_broken_stream(heat, stoker):
    known = heat.add_trigger("db1", "db2")
    heat.story = [
        log(heat, "db1", chunk(3, "stdout", "one\n")),
        target(0, "IN_PROGRESS"),
        log(heat, "db2", chunk(4, "stdout", "other\n")),
        DROP,
        log(heat, "db1", chunk(8, "stdout", "two\n")),
        trigger("COMPLETE"),
        END,
    ]

    result = stoker("trigger", "logs", "--follow", known["id"])

    assert (result.code, result.out) == (0, "db1 | one\ndb2 | other\ndb1 | two\n")
    assert heat.last_ids == ["", "4"]


def test_the_logs_of_one_of_several_servers_are_followed(heat, stoker):
    known = heat.add_trigger("db1", "db2")
    heat.story = [log(heat, "db1", chunk(1, "stdout", "a\n")), log(heat, "db2", chunk(2, "stdout", "b\n")), END]

    assert stoker("trigger", "logs", "--follow", known["id"], "--server", "db2").out == "b\n"


def test_discarded_output_is_mentioned(heat, stoker, deployed):
    heat.story = [
        Say("log", chunk(1, "stdout", "head", offset=0, size=4), 1),
        Say("log", chunk(2, "stderr", "e", offset=0, size=1), 2),
        Say("log", chunk(3, "stdout", "tail", offset=1004, size=4), 3),
        END,
    ]

    result = stoker("deployment", "logs", "--follow", deployed)

    assert result.out == "headtail"
    assert result.err == "estoker: 1000 bytes of the stdout were not kept here\n"


def test_a_repeated_tail_is_printed_once(heat, stoker, deployed):
    heat.story = [
        Say("log", chunk(1, "stdout", "head", offset=0, size=4), 1),
        Say("log", chunk(2, "stdout", "seen", offset=104, size=4), 2),
        Say("log", chunk(3, "stdout", "before", offset=98, size=6), 3),
        Say("log", chunk(4, "stdout", "seen, new", offset=104, size=9), 4),
        END,
    ]

    result = stoker("deployment", "logs", "--follow", deployed)

    assert result.out == "headseen, new"
    assert result.err == "stoker: 100 bytes of the stdout were not kept here\n"


# deployments


@pytest.fixture
def deployed(heat):
    config = heat.create_config({"name": "setup", "group": "script"})["software_config"]
    server = heat.add_server("web1")
    return heat.create_deployment({"config_id": config["id"], "server_id": server["id"]})["software_deployment"]["id"]


def test_following_a_deployment_resumes_after_the_last_event(heat, stoker, deployed):
    heat.story = [
        Say("log", chunk(4, "stdout", "one "), 4),
        Say("progress", {"percent": 3}),
        Raw(b'id: 5\nevent: log\ndata: {"seq": 5, "str'),
        DROP,
        Say("log", chunk(5, "stdout", "two\n"), 5),
        Raw(b""),  # what ends a stream as it should end, though it is not over
        DROP,
        Say("end", {"status": "COMPLETE"}),
    ]

    result = stoker("deployment", "logs", "-f", deployed)

    assert (result.code, result.out) == (0, "one two\n")
    assert heat.last_ids == ["", "4", "5"]


def test_a_service_without_events_is_polled_page_by_page(heat, stoker, deployed):
    heat.script.pages = [[("stdout", "a")], [("stdout", "b")]]

    assert stoker("deployment", "logs", "-f", deployed).out == "ab"


def test_the_history_lists_runs(heat, stoker, deployed):
    heat.runs = [
        {"number": 2, "action": "UPDATE", "state": "DONE", "status": "FAILED", "status_code": 3, "requested_by": "ann"},
        {
            "number": 1,
            "action": "CREATE",
            "state": "DONE",
            "status": "COMPLETE",
            "status_code": 0,
            "requested_by": "bob",
        },
    ]

    rows = [line.split() for line in stoker("deployment", "history", deployed).out.splitlines()]
    assert rows[1:] == [["2", "UPDATE", "DONE", "FAILED", "3", "ann"], ["1", "CREATE", "DONE", "COMPLETE", "0", "bob"]]
    assert made(stoker("deployment", "history", deployed, "-o", "json")) == heat.runs
    assert made(stoker("deployment", "history", deployed, "1", "-o", "json")) == heat.runs[1]
    missing = stoker("deployment", "history", deployed, "7")
    assert (missing.code, missing.err) == (1, f"stoker: deployment {deployed} has no run 7; it has: 2, 1\n")


def test_the_history_shows_differences_line_by_line(heat, stoker, deployed):
    diff = "--- /etc/motd\n+++ /etc/motd\n@@ -1 +1 @@\n-old: 'x'\n+new: \"y\""
    changes = [
        {"item": "/etc/motd", "outcome": "changed", "diff": diff},
        {"item": "nginx", "outcome": "changed", "diff": "absent → 1.2"},
    ]
    heat.runs = [{"number": 1, "changed": True, "changes": changes}]

    lines = stoker("deployment", "history", deployed, "1").out.splitlines()

    first = next(number for number, line in enumerate(lines) if "changed: /etc/motd" in line)
    assert [line.strip() for line in lines[first + 1 : first + 7]] == [
        *diff.splitlines(),
        "changed: nginx: absent → 1.2",
    ]
    assert made(stoker("deployment", "history", deployed, "1", "-o", "json")) == heat.runs[0]


def test_a_deployment_is_cancelled_and_retried(heat, stoker, deployed):
    heat.script.status, heat.script.outputs = "FAILED", {"deploy_status_code": -15}

    assert stoker("deployment", "cancel", deployed, "--force", "--wait").code == 0
    assert said(heat) == {"force": True}
    again = stoker("deployment", "cancel", deployed)
    assert (again.code, again.err) == (5, f"stoker: The deployment ({deployed}) is not in progress.\n")
    assert stoker("deployment", "retry", deployed).code == 0
    refused = stoker("deployment", "retry", deployed)
    assert (refused.code, "did not fail" in refused.err) == (5, True)
    heat.deployments[deployed]["status"] = "FAILED"
    heat.script.outputs = {"deploy_stderr": "oh no\n"}
    waited = stoker("deployment", "retry", deployed, "--wait")
    assert (waited.code, "oh no" in waited.err) == (1, True)


def test_all_deployments_are_cancelled_before_the_first_wait(heat, stoker, deployed):
    other = heat.create_deployment({**heat.deployments[deployed], "server_id": "s"})["software_deployment"]["id"]
    heat.script.status = "FAILED"

    result = stoker("deployment", "cancel", deployed, GONE, other, "--wait")

    assert (result.code, result.err.count(f"({GONE}) could not be found")) == (4, 1)
    steps = [path.split("/")[2:] for _, path in heat.calls if path.startswith("/software_deployments/")]
    assert steps[:3] == [[deployed, "cancel"], [GONE, "cancel"], [other, "cancel"]]
    assert [id_ for id_, _ in steps[3:]] == [deployed, other]


def test_a_retry_that_runs_later_is_not_awaited(heat, stoker, deployed, monkeypatch):
    heat.deployments[deployed]["status"] = "FAILED"
    as_it_is = ("POST", "/software_deployments/(?P<id_>[^/]+)/retry", LittleHeat.show_deployment, little_heat.ACCEPTED)
    monkeypatch.setattr(little_heat, "ROUTES", [as_it_is, *little_heat.ROUTES])

    result = stoker("deployment", "retry", deployed)
    assert (result.code, "runs again when its stack has repeated what it requires" in result.out) == (0, True)
    result = stoker("deployment", "retry", deployed, "--wait")
    assert (result.code, "wait for its stack" in result.err) == (1, True)


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_waiting_without_following_reads_no_log(heat, stoker, deployed, verb):
    heat.script.pages = [[("stdout", "a lot")]] * 10
    heat.deployments[deployed]["status"] = "FAILED" if verb == "retry" else "IN_PROGRESS"

    assert stoker("deployment", verb, deployed, "--wait").code == 0
    [path] = [path for _, path in heat.calls if "/logs" in path]
    assert "after=2147483647" in path


# servers


def test_labels_are_set_shown_removed_and_selected(heat, stoker):
    heat.add_server("web1")
    heat.add_server("web2")

    assert made(stoker("server", "label", "web1", "role=web", "site=", "gone-", "-o", "json")) == {
        "role": "web",
        "site": "",
    }
    assert said(heat) == {"labels": {"role": "web", "site": "", "gone": None}}
    assert made(stoker("server", "label", "web1", "site-", "-o", "json")) == {"role": "web"}
    assert stoker("server", "label", "web1").out.splitlines()[1].split() == ["role", "web"]
    assert [each["name"] for each in made(stoker("server", "list", "--label", "role=web", "-o", "json"))] == ["web1"]
    assert "role=web" in stoker("server", "list").out
    assert stoker("server", "label", "web1", "nothing").code == 2


def test_a_policy_is_read_from_options_or_a_file_and_removed(heat, stoker, nowhere):
    heat.add_server("db1")
    window = "0 2 * * *; 120; Europe/Vienna"
    words = ("--allow", "stack=app", "--allow", "project=p", "--group", "script", "--max-concurrent", "2")
    assert stoker("server", "policy", "db1", *words, "--window", window, "--window", "*/5 * * * *;1").code == 0
    assert said(heat)["policy"] == {
        "allow": [{"stack": "app"}, {"project": "p"}],
        "groups": ["script"],
        "max_concurrent_runs": 2,
        "maintenance_windows": [
            {"cron": "0 2 * * *", "minutes": 120, "timezone": "Europe/Vienna"},
            {"cron": "*/5 * * * *", "minutes": 1},
        ],
    }
    stoker("server", "policy", "db1", "--allow", "stack")
    assert said(heat)["policy"] == {"allow": "STACK"}
    (nowhere / "p.yaml").write_text("allow: STACK\n")
    assert made(stoker("server", "policy", "db1", "p.yaml", "-o", "json"))["policy_source"] == "server"
    assert said(heat)["policy"] == {"allow": "STACK"}
    assert made(stoker("server", "policy", "db1", "--clear", "-o", "json"))["policy_source"] == "site"
    assert said(heat)["policy"] is None
    assert made(stoker("server", "policy", "db1", "-o", "json"))["policy"] == "PROJECT"


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--clear", "--allow", "STACK"], 2, "a file, or options, or --clear"),
        (["--allow", "STACK", "--allow", "stack=x"], 2, "give it alone"),
        (["--allow", "user=x"], 2, "none of STACK"),
        (["--window", "0 2 * * *"], 2, "'CRON; MINUTES'"),
        (["list.yaml"], 2, "holds no policy"),
        (["bad.yaml"], 2, "is not YAML"),
        (["gone.yaml"], 2, "cannot read gone.yaml"),
    ],
)
def test_an_invalid_policy_is_not_sent(heat, stoker, nowhere, words, code, complaint):
    (nowhere / "list.yaml").write_text("[1]")
    (nowhere / "bad.yaml").write_text("{")

    result = stoker("server", "policy", "db1", *words)

    assert (result.code, complaint in result.err) == (code, True)
    assert heat.calls == []


# schedules and the audit log


def test_a_schedule_is_created_changed_and_deleted(heat, stoker):
    words = ("app", "database", "BACKUP", "-i", "a=b", "--label", "role=db", "--name", "nightly")
    more = (
        "--cron",
        "30 2 * * *",
        "--timezone",
        "Europe/Vienna",
        "--misfire-policy",
        "skip",
        "--require-window",
        "--disabled",
    )
    schedule = made(stoker("schedule", "create", *words, *more, "-o", "json"))

    assert said(heat) == {
        "software_schedule": {
            "name": "nightly",
            "cron": "30 2 * * *",
            "timezone": "Europe/Vienna",
            "require_window": True,
            "misfire_policy": "SKIP",
            "enabled": False,
            "trigger": {
                "stack": "app",
                "resource": "database",
                "action": "BACKUP",
                "input_values": {"a": "b"},
                "selector": "role=db",
            },
        }
    }
    assert "nightly" in stoker("schedule", "list").out
    assert made(stoker("schedule", "show", "nightly", "-o", "json")) == schedule
    assert made(stoker("schedule", "set", "nightly", "--enable", "--any-time", "-o", "json"))["enabled"] is True
    assert said(heat) == {"software_schedule": {"enabled": True, "require_window": False}}
    assert stoker("schedule", "delete", "--yes", "nightly").code == 0
    assert "`stoker schedule list`" in stoker("schedule", "show", "nightly").err


@pytest.mark.parametrize(
    "words",
    [
        ["create", "app", "database"],
        ["create", "app", "database", "--cron", "0 0 * * *", "--at", TIME],
        ["create", "--cron", "0 0 * * *"],
        ["set", "x"],
        ["set", "x", "--cron", "0 0 * * *", "--at", TIME],
    ],
)
def test_a_schedule_needs_a_target_and_a_time(heat, stoker, words):
    assert stoker("schedule", *words).code == 2
    assert heat.calls == []


def test_a_schedules_name_may_be_ambiguous(heat, stoker):
    for _ in range(2):
        stoker("schedule", "create", "app", "database", "--at", TIME, "--name", "twice")

    assert "2 schedules are named 'twice'" in stoker("schedule", "delete", "--yes", "twice").err


def test_a_schedule_without_a_name_is_named_after_its_target(heat, stoker):
    stoker("schedule", "create", "app", "database", "BACKUP", "--at", TIME)

    assert stoker("schedule", "show", "app database BACKUP").code == 0


@pytest.mark.parametrize(("there", "questions"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3)])
def test_an_incomplete_page_is_the_last_one(heat, stoker, short_pages, there, questions):
    for _ in range(there):
        heat.add_trigger("db1")

    assert len(made(stoker("trigger", "list", "-o", "json"))) == there
    assert asked(heat, "/software_triggers") == questions


def test_the_audit_log_is_listed(heat, stoker, short_pages):
    heat.decisions = [
        {"id": n + 1, "time": TIME, "actor": "ann", "action": "BACKUP", "outcome": "REFUSED", "reason": "no window",
         "server_id": "id", "server_name": "db1" if n % 2 else "other"}
        for n in range(5)
    ]  # fmt: skip

    assert [each["id"] for each in made(stoker("audit", "list", "-o", "json"))] == [1, 2, 3, 4, 5]
    assert [each["id"] for each in made(stoker("audit", "list", "--server", "db1", "-o", "json"))] == [2, 4]
    assert [each["id"] for each in made(stoker("audit", "list", "--limit", "3", "-o", "json"))] == [1, 2, 3]
    listed = stoker("audit", "list", "-o", "value", "-c", "server", "-c", "reason").out.splitlines()
    assert listed == ["other\tno window", "db1\tno window"] * 2 + ["other\tno window"]
