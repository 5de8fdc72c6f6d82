"""What comes of a config: results, inputs, outputs, hooks."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.slow


def ran(server, agent, entry):
    """The report of one entry."""
    server.give(entry)
    agent.start()
    return server.result(entry["id"])


def test_a_run_end_to_end(server, agent):
    script = '#!/bin/bash\necho "hello $who"; echo oops >&2\nprintf 42 >$heat_outputs_path.answer\nexit 3\n'
    values = ran(server, agent, server.entry("c1", script, outputs=["answer", "other"], who="world"))
    assert values == {
        "deploy_stdout": "hello world\n",
        "deploy_stderr": "oops\n",
        "deploy_status_code": 3,
        "deploy_run_seconds": values["deploy_run_seconds"],
        "answer": "42",
    }
    assert 0 < values["deploy_run_seconds"] < 300
    server.until(lambda: agent.run_folder("c1").joinpath("acknowledged").exists())
    assert "hooks=" in server.polls[0] and "script" in server.polls[0]
    server.give(server.entry("c2", "true"))
    server.result("c2")
    assert [id for id, _ in server.signals] == ["c1", "c2"]


def test_all_files_of_a_run_are_readable_only_by_their_owner(server, agent):
    ran(server, agent, server.entry("c1", "true", secret="s"))
    for folder in (agent.root / "state", agent.run_folder("c1")):
        assert folder.stat().st_mode & 0o077 == 0
    assert agent.run_folder("c1").joinpath("entry.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain 'quoted' \"twice\" $HOME\nline", "plain 'quoted' \"twice\" $HOME\nline"),
        ("größe ✓", "größe ✓"),
        ("", ""),
        (None, ""),
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        ([1, "a"], '[1, "a"]'),
        ({"a": {"b": None}}, '{"a": {"b": null}}'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_inputs_are_the_environment(server, agent, value, text):
    assert ran(server, agent, server.entry("c1", 'printf %s "$it"', it=value))["deploy_stdout"] == text


def test_a_script_starts_in_an_empty_directory_that_is_removed_after_the_run(server, agent):
    folder = agent.run_folder("c1") / "cwd"
    assert ran(server, agent, server.entry("c1", "pwd; ls -A; touch file"))["deploy_stdout"] == f"{folder}\n"
    assert not folder.exists()
    assert agent.process.poll() is None


def test_a_script_without_an_interpreter_line_runs_in_the_shell(server, agent):
    assert ran(server, agent, server.entry("c1", "x=1\necho $((x + 1))"))["deploy_stdout"] == "2\n"


def test_a_missing_interpreter_is_a_failure(server, agent):
    values = ran(server, agent, server.entry("c1", "#!/no/such/interpreter\n"))
    assert values["deploy_status_code"] == 126
    assert "could not be started" in values["deploy_status_reason"]


def test_a_missing_hook_is_a_failure_with_its_reason(server, agent):
    values = ran(server, agent, server.entry("c1", "x", group="no such/group"))
    assert values["deploy_status_code"] == 1
    assert "No hook for group 'no such/group'" in values["deploy_status_reason"]
    assert str(agent.root / "hooks") in values["deploy_status_reason"]


@pytest.mark.parametrize("config", [{"a": 1}, ["x"], 5])
def test_a_config_that_is_not_text_is_a_failure(server, agent, config):
    assert "must be text" in ran(server, agent, server.entry("c1", config))["deploy_status_reason"]


@pytest.mark.parametrize("value", ["a\0b", "lone \ud800 surrogate", "x" * 200_000], ids=["nul", "surrogate", "huge"])
def test_an_input_that_fits_no_environment_variable_fails_only_its_own_run(server, agent, value):
    server.give(server.entry("c1", "touch $WORK/ran", it=value), server.entry("c2", "echo next"))
    agent.start()
    assert server.result("c1")["deploy_status_code"] in (1, 126)
    assert server.result("c1")["deploy_status_reason"]
    assert server.result("c2")["deploy_stdout"] == "next\n"
    assert not agent.work.joinpath("ran").exists()


def test_outputs_without_a_file_are_omitted(server, agent):
    script = "mkdir $heat_outputs_path.folder; mkfifo $heat_outputs_path.pipe; printf '\\377' >$heat_outputs_path.odd"
    values = ran(server, agent, server.entry("c1", script, outputs=["folder", "pipe", "odd", "../x", "n\0"]))
    assert (values["deploy_status_code"], values["odd"]) == (0, "\ufffd")
    assert not {"folder", "pipe", "../x", "n\0"} & set(values)


def test_an_output_too_large_for_a_report_is_a_failure_with_the_reason(server, agent):
    script = "echo kept; head -c 1500000 /dev/zero | tr '\\0' x >$heat_outputs_path.big"
    values = ran(server, agent, server.entry("c1", script, outputs=["big"]))
    assert values["deploy_status_code"] == 1
    assert "larger than a report" in values["deploy_status_reason"]
    assert values["deploy_stdout"] == "kept\n"


def test_binary_output_is_decoded_with_replacement_characters(server, agent):
    values = ran(server, agent, server.entry("c1", "printf 'a\\377\\000\\200b'; printf '\\303' >&2"))
    assert values["deploy_stdout"] == "a\ufffd\0\ufffdb"
    assert values["deploy_stderr"] == "\ufffd"


def test_the_report_of_five_megabytes_of_output_has_head_and_tail(server, agent):
    script = "#!/usr/bin/env python3\nfor n in range(500_000): print(f'grüße {n:04}')\n"
    values = ran(server, agent, server.entry("c1", script))
    head, mark, tail = re.split(r"\n(\[… \d+ bytes were cut here])\n", values["deploy_stdout"])
    assert head.startswith("grüße 0000\ngrüße 0001\n")
    assert tail.endswith("grüße 499998\ngrüße 499999\n")
    assert "\ufffd" not in head + tail
    assert min(len(head), len(tail)) > 50_000
    missing = int(re.sub(r"\D", "", mark))
    assert missing == sum(len(f"grüße {n:04}\n".encode()) for n in range(500_000)) - len((head + tail).encode())
    assert max(server.sizes) <= 950_000


def test_a_report_fits_although_json_escapes_lengthen_both_streams(server, agent):
    script = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero | tr '\\0' '\\377' >&2; echo end; echo end >&2"
    values = ran(server, agent, server.entry("c1", script))
    assert max(server.sizes) <= 950_000
    assert values["deploy_stderr"].endswith("end\n")


COMPONENT = {
    "configs": [
        {"actions": ["CREATE"], "config": "echo create $deploy_action", "tool": "script"},
        {"actions": ["UPDATE", "DELETE"], "config": "echo other", "tool": "script"},
    ]
}


@pytest.mark.parametrize(("action", "stdout"), [("CREATE", "create CREATE\n"), ("DELETE", "other\n")])
def test_a_component_runs_its_config_for_the_action(server, agent, action, stdout):
    entry = server.entry("c1", COMPONENT, group="component", deploy_action=action)
    assert ran(server, agent, entry)["deploy_stdout"] == stdout


def test_a_component_without_a_config_for_the_action_fails(server, agent):
    values = ran(server, agent, server.entry("c1", COMPONENT, group="component", deploy_action="SUSPEND"))
    assert values["deploy_status_code"] == 1
    assert values["deploy_status_reason"] == "The component has no config for the action SUSPEND"


@pytest.mark.parametrize("config", [None, "text", {"configs": 5}, {"configs": [7]}])
def test_an_invalid_component_fails(server, agent, config):
    server.give(server.entry("c1", config, group="component", deploy_action="CREATE"), server.entry("c2", "echo on"))
    agent.start()
    assert server.result("c1")["deploy_status_code"] == 1
    assert server.result("c1")["deploy_status_reason"]
    assert server.result("c2")["deploy_stdout"] == "on\n"


def test_a_hook_with_a_json_answer(server, agent):
    agent.hook("foo", '#!/bin/sh\ncat >$WORK/told\necho log >&2\necho \'{"deploy_status_code": 0, "x": [1]}\'\n')
    entry = server.entry("c1", {"any": "thing"}, group="foo", outputs=["x"], who="w")
    values = ran(server, agent, entry)
    assert values.pop("deploy_run_seconds") > 0
    assert values == {
        "deploy_stdout": "",
        "deploy_stderr": "log\n",
        "deploy_status_code": 0,
        "x": [1],
    }
    assert json.loads(agent.work.joinpath("told").read_text()) == entry
    assert "foo" in server.polls[0]


@pytest.mark.parametrize(
    ("ending", "code", "stdout"),
    [
        ("echo no json", 0, "no json\n"),
        ("echo no json; exit 4", 4, "no json\n"),
        ("echo '[1]'; exit 4", 4, "[1]\n"),
        ("exit 0", 0, ""),
        ("exit 5", 5, ""),
        ('echo \'{"deploy_status_code": 0, "deploy_stdout": "said"}\'; exit 6', 0, "said"),
        ('echo \'{"deploy_stdout": "said"}\'; exit 6', 6, "said"),
    ],
)
def test_the_answer_of_a_hook_becomes_the_result(server, agent, ending, code, stdout):
    agent.hook("foo", f"#!/bin/sh\n{ending}\n")
    values = ran(server, agent, server.entry("c1", "x", group="foo"))
    assert (values["deploy_status_code"], values["deploy_stdout"]) == (code, stdout)


def test_a_hook_of_the_server_overrides_the_built_in_one(server, agent):
    agent.hook("script", "#!/bin/sh\necho mine\n")
    assert ran(server, agent, server.entry("c1", "echo theirs"))["deploy_stdout"] == "mine\n"


@pytest.mark.parametrize(
    ("entry", "outcome"),
    [
        (
            {"group": "file", "mode": "check"},
            {"deploy_status_code": 0, "deploy_changed": True, "deploy_changes": 1, "written": False},
        ),
        ({"group": "file", "mode": "apply"}, {"deploy_status_code": 0, "deploy_changed": True, "written": True}),
        ({"group": "script", "mode": "preview", "config": "touch $WORK/motd"}, {"deploy_status_code": 95}),
        ({"group": "knows", "mode": "check"}, {"deploy_status_code": 0, "deploy_stdout": "check\n"}),
        ({"group": "heats", "mode": "check"}, {"deploy_status_code": 95}),
        ({"group": "heats"}, {"deploy_status_code": 0, "deploy_stdout": "applied\n"}),
        ({"group": "file", "mode": "other"}, {"deploy_status_code": 95}),
    ],
    ids=lambda value: "-".join((value["group"], value.get("mode", "none"))) if "group" in value else "",
)
def test_the_mode_of_an_entry_reaches_hooks_that_know_modes(server, agent, entry, outcome):
    agent.hook("knows", '#!/bin/sh\necho "$STOKER_HOOK_MODE"\n')
    agent.hook("heats", "#!/bin/sh\necho applied\n")
    config = {"path": str(agent.work / "motd"), "content": "Hello\n"}
    values = ran(server, agent, {**server.entry("c1", config), **entry})
    written = agent.work.joinpath("motd").exists()
    seen = {**values, "deploy_changes": len(values.get("deploy_changes", ())), "written": written}
    assert {key: seen[key] for key in outcome} == outcome
    assert written is outcome.get("written", False)


def test_a_hook_may_ignore_its_large_input(server, agent):
    agent.hook("foo", "#!/bin/sh\nsetsid sleep 1000 >/dev/null 2>&1 &\nexit 0\n")
    assert ran(server, agent, server.entry("c1", "x" * 1_000_000, group="foo"))["deploy_status_code"] == 0


@pytest.mark.slow  # what ignores TERM is given some seconds
def test_a_timeout_ends_the_whole_process_group(server, agent):
    script = """
    (trap '' TERM; echo child; while :; do sleep 0.1; done) &
    (setsid sleep 1000 & echo $! >$WORK/daemon)
    sleep 1000"""
    values = ran(server, agent, server.entry("c1", script, deploy_timeout="0.5"))
    assert values["deploy_status_code"] == 124
    assert values["deploy_status_reason"] == "Timed out after 0.5 s"
    assert values["deploy_stdout"] == "child\n"
    server.until(lambda: set(agent.living()) == {agent.process.pid, int(agent.lines("daemon")[0])})


@pytest.mark.parametrize("timeout", ["100", "", "0", "-1", "soon", "nan", "inf", None])
def test_a_run_within_its_timeout_or_without_one_is_not_ended(server, agent, timeout):
    values = ran(server, agent, server.entry("c1", "echo fine", deploy_timeout=timeout))
    assert (values["deploy_stdout"], values["deploy_status_code"]) == ("fine\n", 0)
