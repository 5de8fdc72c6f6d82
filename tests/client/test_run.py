"""``stoker run``: a script on a server, as if it ran here."""

import shlex
import signal
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.little_heat import TIME, Script
from stoker_client.adhoc import exit_code, script_of, with_shebang

pytestmark = pytest.mark.slow


@pytest.fixture
def web1(heat):
    return heat.add_server("web1")


def posted(heat, path: str):
    [body] = [body for method, where, body in heat.bodies if (method, where) == ("POST", path)]
    return body


def test_output_arrives_in_its_streams_and_everything_is_deleted(heat, stoker, web1):
    heat.script = Script([[("stdout", "one\n")], [("stderr", "oops\n"), ("stdout", "two")]])

    result = stoker("run", "web1", "--", "true")

    assert (result.code, result.out, result.err) == (0, "one\ntwo", "oops\n")
    assert (heat.configs, heat.deployments) == ({}, {})


def test_a_repeated_tail_is_printed_once(heat, stoker, web1):
    again = [("stdout", "before, seen", 96), ("stdout", " and new\n", 108)]
    heat.script = Script([[("stdout", "head", 0), ("stdout", "seen", 104)], again])

    result = stoker("run", "web1", "--", "true")

    assert result.out == "headseen and new\n"
    assert result.err == "stoker: 100 bytes of the stdout were not kept here\n"


def test_the_requests_of_a_run_are_these(heat, stoker, web1):
    stoker("run", "web1", "--timeout", "9", "-i", "tier=web", "--name", "n", "--", "echo", "a b", "$x")

    assert posted(heat, "/software_configs") == {
        "name": "n",
        "group": "script",
        "config": "#!/bin/sh\necho 'a b' '$x'\n",
        "inputs": [{"name": "tier"}],
    }
    deployment = posted(heat, "/software_deployments")
    assert len(deployment.pop("config_id")) == 36
    assert deployment == {
        "name": "n",
        "server_id": web1["id"],
        "input_values": {"tier": "web"},
        "action": "CREATE",
        "signal_transport": "STOKER_SIGNAL",
        "timeout": 9,
    }


def test_one_argument_is_a_line_of_shell(heat, stoker, web1):
    stoker("run", "web1", "--", "df -h | sort")

    assert posted(heat, "/software_configs")["config"] == "#!/bin/sh\ndf -h | sort\n"


def test_options_after_two_dashes_belong_to_the_script(heat, stoker, web1):
    stoker("run", "web1", "--", "ls", "--name", "--", "-f")

    assert posted(heat, "/software_configs")["config"] == "#!/bin/sh\nls --name -- -f\n"


def test_a_script_is_read_from_a_file(heat, stoker, web1, nowhere):
    (nowhere / "go.py").write_text("#!/usr/bin/env python3\nprint(1)\n")

    stoker("run", "web1", "-f", "go.py")

    assert posted(heat, "/software_configs")["config"] == "#!/usr/bin/env python3\nprint(1)\n"


@pytest.mark.parametrize("args", [[], ["-f", "x", "--", "ls"]])
def test_a_command_and_a_script_exclude_each_other(heat, stoker, web1, args):
    assert stoker("run", "web1", *args).code == 2
    assert heat.calls == []


@pytest.mark.parametrize("code", [1, 3, 255])
def test_the_exit_code_is_the_scripts(heat, stoker, web1, code):
    reason = f"deploy_status_code : Deployment exited with non-zero status code: {code}"
    heat.script = Script(status="FAILED", reason=reason, outputs={"deploy_status_code": code})

    result = stoker("run", "web1", "--", "false")

    assert (result.code, result.err) == (code, "")
    assert heat.deployments == {}


def test_a_failure_without_a_code_exits_with_1_and_its_reason(heat, stoker, web1):
    heat.script = Script(status="FAILED", reason="no hook for group script")

    result = stoker("run", "web1", "--", "false")

    assert (result.code, result.err) == (1, "stoker: run on web1: no hook for group script\n")


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
    outputs = {"deploy_status_code": code}
    finished = {"id": "", "server_id": "", "config_id": "", "action": "", "status_reason": ""}

    assert exit_code({**finished, "status": status, "output_values": outputs}) == ours


def test_keep_deletes_nothing_and_prints_the_ids(heat, stoker, web1):
    result = stoker("run", "web1", "--keep", "--", "true")

    [deployment] = heat.deployments
    assert deployment in result.err
    assert len(heat.configs) == 2


def test_without_live_logs_the_output_is_printed_at_the_end(heat, stoker, web1):
    heat.script = Script(outputs={"deploy_stdout": "late\n", "deploy_stderr": "oops\n", "deploy_status_code": 0})

    result = stoker("run", "web1", "--", "true")

    assert (result.out, result.err) == ("late\n", "oops\n")


def test_an_offline_server_is_reported(heat, stoker):
    heat.add_server("web1", "OFFLINE")

    result = stoker("run", "web1", "--", "true")

    assert result.err == (
        f"stoker: web1 is OFFLINE (last seen {TIME}): waiting for its agent, for 60 s at most (--wait-timeout)\n"
    )


def test_the_reason_why_a_run_waits_is_printed(heat, stoker):
    heat.add_server("web1")
    heat.first_reason = "Waiting for the maintenance window of web1, which opens 2026-05-02T02:00:00Z"

    result = stoker("run", "web1", "--", "true")

    assert result.err == f"stoker: {heat.first_reason}; waiting for 60 s at most (--wait-timeout)\n"


def test_an_unknown_server_creates_nothing(heat, stoker):
    result = stoker("run", "nope", "--", "true")

    assert result.code == 4
    assert "`stoker server list`" in result.err
    assert heat.configs == {}


def test_output_is_printed_while_the_script_runs(heat, web1, spawn):
    process, line = running(heat, spawn)

    assert line == "started\n"
    assert process.poll() is None
    assert next(iter(heat.deployments.values()))["status"] == "IN_PROGRESS"


def test_ctrl_c_says_that_the_run_continues(heat, web1, spawn):
    process, _ = running(heat, spawn)
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=60)

    [deployment] = heat.deployments
    assert process.returncode == 130
    assert f"deployment {deployment} continues on web1" in err
    assert f"stoker deployment delete {deployment}" in err
    assert "Traceback" not in err


def running(heat, spawn) -> tuple[subprocess.Popen[str], str]:
    """A call of ``run`` whose script has written one line and does not end."""
    heat.script = Script([[("stdout", "started\n")], *([[]] * 1_000_000)])
    process = spawn("-m", "stoker_client.cli.main", "run", "web1", "--", "sleep 1000")
    assert process.stdout is not None
    line = process.stdout.readline()
    while sum("/logs" in path for _, path in heat.calls) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    return process, line


words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=10)


@given(st.lists(words, min_size=2, max_size=5))
def test_several_arguments_reach_the_program_as_they_are(command):
    assert shlex.split(script_of(command).partition("\n")[2]) == command


def test_a_script_without_a_shebang_gets_one():
    assert with_shebang("echo") == "#!/bin/sh\necho"
    assert with_shebang("#!/x\n") == "#!/x\n"
