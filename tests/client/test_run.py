"""``stoker run``: a script on a server, as if it ran here."""

import re
import signal

import pytest

from stoker_client.results import exit_code

pytestmark = pytest.mark.slow


@pytest.fixture
def web1(site):
    """The silent agent of a server."""
    return site.add_agent("web1")


@pytest.fixture
def acting(site, web1):
    """The agent of a server where each run succeeds."""
    site.act(web1)
    return web1


def posted(site, path: str):
    [body] = [body for method, where, body in site.bodies if (method, where) == ("POST", path)]
    return body


def left(site):
    """The numbers of configs, and of deployments."""
    configs = site.api("GET", "/software_configs")["software_configs"]
    return len(configs), len(site.api("GET", "/software_deployments")["software_deployments"])


def test_output_arrives_in_its_streams_and_everything_is_deleted(site, stoker, web1):
    def act(agent, run):
        agent.log(run["id"], 0, b"one\n")
        agent.log(run["id"], 0, b"oops\n", "stderr")
        agent.log(run["id"], 4, b"two")
        agent.finish(run["id"])

    acts = [act, lambda agent, run: agent.finish(run["id"], deploy_stdout="late\n", deploy_stderr="oops\n")]
    site.act(web1, lambda *run: acts.pop(0)(*run))
    for out in ("one\ntwo", "late\n"):  # the second without live logs
        result = stoker("run", "web1", "--", "true")
        assert (result.code, result.out, result.err) == (0, out, "oops\n")
        assert left(site) == (0, 0)


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (("--", "df -h | sort"), "#!/bin/sh\ndf -h | sort\n"),
        (("--", "a b", "$x", "it's"), "#!/bin/sh\n'a b' '$x' 'it'\"'\"'s'\n"),
        (("-f", "go.sh"), "#!/bin/sh\necho\n"),
        (("--", "ls", "--name", "--", "-f"), "#!/bin/sh\nls --name -- -f\n"),
        (("-f", "go.py"), "#!/usr/bin/env python3\nprint(1)\n"),
    ],
)
def test_the_script_is_a_line_of_shell_a_program_with_arguments_or_a_file(site, stoker, acting, nowhere, words, script):
    (nowhere / "go.py").write_text("#!/usr/bin/env python3\nprint(1)\n")
    (nowhere / "go.sh").write_text("echo\n")

    stoker("run", "web1", "--timeout", "9", "-i", "tier=web", "--name", "n", "--canary", "1", *words)

    config = {"name": "n", "group": "script", "config": script, "inputs": [{"name": "tier"}]}
    assert posted(site, "/software_configs") == config
    trigger = posted(site, "/software_triggers")
    assert len(trigger.pop("config_id")) == 36
    assert trigger == {
        "name": "n", "servers": [acting.id], "input_values": {"tier": "web"}, "timeout": 9, "canary": 1
    }  # fmt: skip


def test_a_failure_without_a_code_exits_with_1_and_its_reason(site, stoker, web1):
    def cancel(agent, run):
        site.api("POST", f"/software_deployments/{run['deployment_id']}/cancel", {"force": True})

    site.act(web1, cancel)
    result = stoker("run", "web1", "--", "false")

    assert result.code == 1
    assert re.fullmatch(r"stoker: web1: .*ancel.*\n", result.err)


@pytest.mark.parametrize(
    ("status", "code", "ours"),
    [
        ("COMPLETE", 0, 0),
        ("COMPLETE", None, 0),
        ("FAILED", 0, 1),
        ("FAILED", None, 1),
        ("FAILED", "7", 7),
        ("FAILED", "seven", 1),
        ("FAILED", -9, 137),
        ("FAILED", 256, 1),
        ("FAILED", [1], 1),
    ],
)
def test_the_exit_code_follows_from_the_result(status, code, ours):
    assert exit_code(status, code) == ours


def test_keep_deletes_nothing_and_prints_the_ids(site, stoker, acting):
    result = stoker("run", "web1", "--keep", "--", "true")

    [trigger] = site.api("GET", "/software_triggers")["software_triggers"]
    assert trigger["id"] in result.err
    assert left(site) == (2, 1)


def test_an_offline_server_is_reported(site, stoker, acting):
    last = {"status": "OFFLINE", "last_seen": "2031-05-06T07:08:09Z"}
    site.change("GET", "/servers/web1", lambda body: {"server": {**body["server"], **last}})

    result = stoker("run", "web1", "--", "true")

    assert result.err == (
        "stoker: web1 is OFFLINE (last seen 2031-05-06T07:08:09Z): waiting for its agent, for 60 s at most"
        " (--wait-timeout)\n"
    )


def test_a_command_runs_on_several_servers_and_on_those_with_a_label(site, stoker, web1):
    site.api("PATCH", "/servers/web1", {"labels": {"role": "web"}})
    site.act(web1, lambda agent, run: agent.finish(run["id"], deploy_stdout="one\n", deploy_stderr="err\n"))
    site.act(site.add_agent("web2"), lambda agent, run: agent.finish(run["id"], 4, deploy_stdout="two\n"))
    labeled = stoker("run", "--label", "role=web", "--", "true")
    assert (labeled.code, labeled.out, labeled.err) == (0, "one\n", "err\n")
    for servers in (["web1", "web2"], ["web?", web1.id[:8]]):
        both = stoker("run", *servers, "--", "true")
        assert (both.code, sorted(both.out.splitlines())) == (4, ["web1 | one", "web2 | two"])
    for servers in (["web1"], ["web1", "web2"]):
        refused = stoker("run", *servers, "-i", "bad name=1", "--", "env")
        assert (refused.code, refused.out) == (5, "")
        assert '"bad name" cannot be an environment variable' in refused.err
    assert left(site) == (0, 0)
    assert stoker("run", "--label", "role=none", "--", "true").err.startswith("stoker: no server matches role=none")


def test_a_run_that_does_not_begin_in_time_is_cancelled(site, stoker, web1):
    site.api("POST", "/servers", {"name": "absent"})
    late = stoker("run", "absent", "--wait-timeout", "1", "--", "true")
    assert (late.code, late.err.splitlines()) == (
        124,
        [
            "stoker: absent is ENROLLING: waiting for its agent, for 1 s at most (--wait-timeout)",
            "stoker: nothing ran on absent within 1 s (ENROLLING); its run is cancelled",
        ],
    )
    codes = [0, 3]
    site.act(web1, lambda agent, run: agent.finish(run["id"], codes.pop(0), deploy_stdout="here\n"))
    for code in (124, 3):
        several = stoker("run", "absent", "web1", "--wait-timeout", "3", "--", "true")
        assert (several.code, several.out) == (code, "web1 | here\n")
        assert "stoker: nothing ran on absent within 3 s (ENROLLING); its run is cancelled" in several.err
    assert left(site) == (0, 0)

    window = {"cron": "0 0 1 1 *", "minutes": 1}
    site.api("PATCH", "/servers/web1", {"policy": {"maintenance_windows": [window]}})
    held = stoker("run", "web1", "--wait-timeout", "1", "--", "true")
    assert held.code == 124
    assert held.err.startswith("stoker: not started on web1: Waiting for the maintenance window of web1, which opens ")
    assert held.err.splitlines()[0].endswith("; waiting for 1 s at most (--wait-timeout)")


def test_output_is_printed_at_once_and_ctrl_c_says_that_the_run_continues(site, web1, spawn):
    site.act(web1, lambda agent, run: agent.log(run["id"], 0, b"started\n"))
    process = spawn("-m", "stoker_client.cli.main", "run", "web1", "--", "sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    [trigger] = site.api("GET", "/software_triggers")["software_triggers"]
    assert (process.poll(), trigger["status"]) == (None, "IN_PROGRESS")

    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"trigger {trigger['id']} continues" in err
    assert f"stoker trigger delete {trigger['id']}" in err
    assert "Traceback" not in err
