"""What comes of a config: results, inputs, outputs, hooks."""

from __future__ import annotations

import json

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


def test_inputs_are_the_environment(server, agent):
    odd = "größe ✓ 'quoted' \"twice\" $HOME\nline"
    inputs = {"a": odd, "b": "", "c": None, "d": 7, "e": 1.5, "f": True, "g": [1, "a"], "h": {"a": {"b": None}}}
    script = 'printf "%s|" "$a" "$b" "$c" "$d" "$e" "$f" "$g" "$h"'
    texts = [odd, "", "", "7", "1.5", "true", '[1, "a"]', '{"a": {"b": null}}', ""]
    assert ran(server, agent, server.entry("c1", script, **inputs))["deploy_stdout"].split("|") == texts


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


def test_a_config_that_is_not_text_is_a_failure(server, agent):
    assert "must be text" in ran(server, agent, server.entry("c1", {"a": 1}))["deploy_status_reason"]


def test_an_input_that_fits_no_environment_variable_fails_only_its_own_run(server, agent):
    bad = {"nul": "a\0b", "surrogate": "lone \ud800 surrogate", "huge": "x" * 200_000}
    server.give(
        *(server.entry(id, "touch $WORK/ran", it=value) for id, value in bad.items()), server.entry("c2", "echo next")
    )
    agent.start()
    for id in bad:
        assert server.result(id)["deploy_status_code"] in (1, 126)
        assert server.result(id)["deploy_status_reason"]
    assert server.result("c2")["deploy_stdout"] == "next\n"
    assert not agent.work.joinpath("ran").exists()


def test_outputs_without_a_file_are_omitted(server, agent):
    script = "mkdir $heat_outputs_path.folder; mkfifo $heat_outputs_path.pipe; printf '\\377' >$heat_outputs_path.odd"
    values = ran(server, agent, server.entry("c1", script, outputs=["folder", "pipe", "odd", "../x", "n\0"]))
    assert (values["deploy_status_code"], values["odd"]) == (0, "\ufffd")
    assert not {"folder", "pipe", "../x", "n\0"} & set(values)


def test_binary_output_is_decoded_with_replacement_characters(server, agent):
    values = ran(server, agent, server.entry("c1", "printf 'a\\377\\000\\200b'; printf '\\303' >&2"))
    assert values["deploy_stdout"] == "a\ufffd\0\ufffdb"
    assert values["deploy_stderr"] == "\ufffd"


COMPONENT = {
    "configs": [
        {"actions": ["CREATE"], "config": "echo create $deploy_action", "tool": "script"},
        {"actions": ["UPDATE", "DELETE"], "config": "echo other", "tool": "script"},
    ]
}


def test_a_component_runs_its_config_for_the_action(server, agent):
    actions = ("CREATE", "DELETE", "SUSPEND")
    server.give(*(server.entry(action, COMPONENT, group="component", deploy_action=action) for action in actions))
    agent.start()
    assert [server.result(action)["deploy_stdout"] for action in actions] == ["create CREATE\n", "other\n", ""]
    values = server.result("SUSPEND")
    assert values["deploy_status_code"] == 1
    assert values["deploy_status_reason"] == "The component has no config for the action SUSPEND"


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


#: What a hook does at its end, the exit code of its run, and the output.
ANSWERS = [
    ("echo no json", 0, "no json\n"),
    ("echo no json; exit 4", 4, "no json\n"),
    ("echo '[1]'; exit 4", 4, "[1]\n"),
    ("exit 0", 0, ""),
    ("exit 5", 5, ""),
    ('echo \'{"deploy_status_code": 0, "deploy_stdout": "said"}\'; exit 6', 0, "said"),
    ('echo \'{"deploy_stdout": "said"}\'; exit 6', 6, "said"),
]


def test_the_answer_of_a_hook_becomes_the_result(server, agent):
    ids = [f"hook{number}" for number in range(len(ANSWERS))]
    for id, (ending, _, _) in zip(ids, ANSWERS, strict=True):
        agent.hook(id, f"#!/bin/sh\n{ending}\n")
    server.give(*(server.entry(id, "x", group=id) for id in ids))
    agent.start()
    results = [server.result(id) for id in ids]
    assert [(values["deploy_status_code"], values["deploy_stdout"]) for values in results] == [
        answer[1:] for answer in ANSWERS
    ]


def test_a_hook_of_the_server_overrides_the_built_in_one(server, agent):
    agent.hook("script", "#!/bin/sh\necho mine\n")
    assert ran(server, agent, server.entry("c1", "echo theirs"))["deploy_stdout"] == "mine\n"


#: Members of an entry, and the exit code, the output and the number of changes of its run.
MODES = [
    ({"group": "file", "mode": "check"}, 0, "would change", 1),
    ({"group": "script", "mode": "preview", "config": "touch $WORK/motd"}, 95, "", 0),
    ({"group": "knows", "mode": "check"}, 0, "check\n", 0),
    ({"group": "heats", "mode": "check"}, 95, "", 0),
    ({"group": "heats"}, 0, "applied\n", 0),
    ({"group": "file", "mode": "other"}, 95, "", 0),
]


def test_the_mode_of_an_entry_reaches_hooks_that_know_modes(server, agent):
    agent.hook("knows", '#!/bin/sh\necho "$STOKER_HOOK_MODE"\n')
    agent.hook("heats", "#!/bin/sh\necho applied\n")
    motd = agent.work / "motd"
    config = {"path": str(motd), "content": "Hello\n"}
    server.give(*({**server.entry(f"c{number}", config), **row[0]} for number, row in enumerate(MODES)))
    agent.start()
    for number, (_, code, stdout, changes) in enumerate(MODES):
        values = server.result(f"c{number}")
        assert (values["deploy_status_code"], len(values.get("deploy_changes", ()))) == (code, changes), values
        assert values["deploy_stdout"].startswith(stdout)
    assert not motd.exists()
    server.give({**server.entry("last", config, group="file"), "mode": "apply"})
    assert server.result("last")["deploy_changed"] is True
    assert motd.read_text() == "Hello\n"


def test_a_hook_may_ignore_its_large_input(server, agent):
    agent.hook("foo", "#!/bin/sh\nsetsid sleep 1000 >/dev/null 2>&1 &\nexit 0\n")
    assert ran(server, agent, server.entry("c1", "x" * 1_000_000, group="foo"))["deploy_status_code"] == 0


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


def test_a_run_within_its_timeout_or_without_one_is_not_ended(server, agent):
    timeouts = ["100", "", "0", "-1", "soon", "nan", "inf", None]
    server.give(*(server.entry(f"c{n}", "echo fine", deploy_timeout=text) for n, text in enumerate(timeouts)))
    agent.start()
    assert [server.result(f"c{n}")["deploy_stdout"] for n in range(len(timeouts))] == ["fine\n"] * len(timeouts)
