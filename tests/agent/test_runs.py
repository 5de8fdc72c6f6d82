"""What comes of a config: results, inputs, outputs, hooks."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow


def assert_reports(server, expected):
    """Compare reports by id. Of a reason, a part is given; None is a value that a report does not have."""
    for id, values in expected.items():
        report = server.result(id)
        for name, value in values.items():
            if name == "deploy_status_reason":
                assert value in report[name], id
            else:
                assert report.get(name) == value, (id, name)


def test_a_run_end_to_end(server, agent):
    script = '#!/bin/bash\necho "hello $who"; echo oops >&2\nprintf 42 >$heat_outputs_path.answer\nexit 3\n'
    values = agent.run(server.entry("c1", script, outputs=["answer", "other"], who="world"))
    assert values == {
        "deploy_stdout": "hello world\n",
        "deploy_stderr": "oops\n",
        "deploy_status_code": 3,
        "deploy_run_seconds": values["deploy_run_seconds"],
        "answer": "42",
    }
    assert 0 < values["deploy_run_seconds"] < 300
    agent.await_acknowledged("c1")
    assert "hooks=" in server.polls[0] and "script" in server.polls[0]
    agent.run(server.entry("c2", "true"))
    assert [id for id, _ in server.signals] == ["c1", "c2"]


ODD = "größe ✓ 'quoted' \"twice\" $HOME\nline"
TEXTS = {"a": ODD, "b": "", "c": None, "d": 7, "e": 1.5, "f": True, "g": [1, "a"], "h": {"a": {"b": None}}}
BINARY = "printf 'a\\377\\000\\200b'; printf '\\303' >&2"
NO_FILES = "mkdir $heat_outputs_path.folder; mkfifo $heat_outputs_path.pipe; printf '\\377' >$heat_outputs_path.odd"
COMPONENT = {
    "configs": [
        {"actions": ["CREATE"], "config": "echo create $deploy_action", "tool": "script"},
        {"actions": ["UPDATE", "DELETE"], "config": "echo other", "tool": "script"},
    ]
}
#: By id: a config, the rest of its entry, and what its report has.
CONFIGS = {
    "texts": (
        'printf "%s|" "$a" "$b" "$c" "$d" "$e" "$f" "$g" "$h"',
        TEXTS,
        {"deploy_stdout": "|".join([ODD, "", "", "7", "1.5", "true", '[1, "a"]', '{"a": {"b": null}}', ""])},
    ),
    "directory": (
        'test "$(pwd)" = $STOKER_RUN_DIR/cwd; echo $?; ls -A; touch file',
        {},
        {"deploy_stdout": "0\n"},
    ),
    "shell": ("x=1\necho $((x + 1))", {}, {"deploy_stdout": "2\n"}),
    "interpreter": (
        "#!/no/such/interpreter\n",
        {},
        {"deploy_status_code": 126, "deploy_status_reason": "could not be started"},
    ),
    "group": (
        "x",
        {"group": "no such/group"},
        {"deploy_status_code": 1, "deploy_status_reason": "No hook for group 'no such/group'"},
    ),
    "map": ({"a": 1}, {}, {"deploy_status_code": 1, "deploy_status_reason": "must be text"}),
    "nul": ("touch $WORK/ran", {"it": "a\0b"}, {"deploy_status_code": 1, "deploy_status_reason": "input 'it'"}),
    "surrogate": ("touch $WORK/ran", {"it": "lone \ud800"}, {"deploy_status_code": 1, "deploy_status_reason": "codec"}),
    "huge": ("touch $WORK/ran", {"it": "x" * 200_000}, {"deploy_status_code": 126, "deploy_status_reason": "long"}),
    "files": (
        NO_FILES,
        {"outputs": ["folder", "pipe", "odd", "../x", "n\0"]},
        {"deploy_status_code": 0, "odd": "\ufffd", **dict.fromkeys(["folder", "pipe", "../x", "n\0"])},
    ),
    "binary": (BINARY, {}, {"deploy_stdout": "a\ufffd\0\ufffdb", "deploy_stderr": "\ufffd"}),
    **{
        action: (COMPONENT, {"group": "component", "deploy_action": action}, expected)
        for action, expected in {
            "CREATE": {"deploy_stdout": "create CREATE\n"},
            "DELETE": {"deploy_stdout": "other\n"},
            "SUSPEND": {
                "deploy_status_code": 1,
                "deploy_status_reason": "The component has no config for the action SUSPEND",
            },
        }.items()
    },
    **{
        f"environment-{number}": (
            *("touch $WORK/ran", {"options": {"environment": value}}),
            {"deploy_status_code": 1, "deploy_status_reason": "option environment"},
        )
        for number, value in enumerate(["A=1", {"A B": "1"}, {"": "1"}, {"A": "x\0y"}])
    },
    **{
        f"timeout-{number}": ("echo fine", {"deploy_timeout": text}, {"deploy_stdout": "fine\n"})
        for number, text in enumerate(["100", "", "0", "-1", "soon", "nan", "inf", None])
    },
}


def test_each_config_gives_its_report_whatever_the_others_do(server, agent):
    agent.begin(*(server.entry(id, config, **more) for id, (config, more, _) in CONFIGS.items()))
    assert_reports(server, {id: expected for id, (_, _, expected) in CONFIGS.items()})
    assert str(agent.root / "hooks") in server.result("group")["deploy_status_reason"]
    assert not agent.run_folder("directory").joinpath("cwd").exists()
    assert not agent.work.joinpath("ran").exists()


def test_a_hook_with_a_json_answer(server, agent):
    agent.hook("foo", '#!/bin/sh\ncat >$WORK/told\necho log >&2\necho \'{"deploy_status_code": 0, "x": [1]}\'\n')
    entry = server.entry("c1", {"any": "thing"}, group="foo", outputs=["x"], who="w")
    values = agent.run(entry)
    assert values.pop("deploy_run_seconds") > 0
    assert values == {"deploy_stdout": "", "deploy_stderr": "log\n", "deploy_status_code": 0, "x": [1]}
    assert json.loads(agent.work.joinpath("told").read_text()) == entry
    assert "foo" in server.polls[0]


#: By group: what its hook does, the exit code of its run, and the output. The input is more than a pipe takes.
HOOKS = {
    "text": ("echo no json", 0, "no json\n"),
    "failed-text": ("echo no json; exit 4", 4, "no json\n"),
    "list": ("echo '[1]'; exit 4", 4, "[1]\n"),
    "nothing": ("exit 0", 0, ""),
    "failed": ("exit 5", 5, ""),
    "own-code": ('echo \'{"deploy_status_code": 0, "deploy_stdout": "said"}\'; exit 6', 0, "said"),
    "no-code": ('echo \'{"deploy_stdout": "said"}\'; exit 6', 6, "said"),
    "daemon": ("setsid sleep 1000 >/dev/null 2>&1 &\nexit 0", 0, ""),
    "script": ("echo in place of the built-in one", 0, "in place of the built-in one\n"),
}


def test_the_answer_of_a_hook_becomes_the_result(server, agent):
    for group, (text, _, _) in HOOKS.items():
        agent.hook(group, f"#!/bin/sh\n{text}\n")
    agent.begin(*(server.entry(group, "x" * 1_000_000, group=group) for group in HOOKS))
    expected = {id: {"deploy_status_code": code, "deploy_stdout": text} for id, (_, code, text) in HOOKS.items()}
    assert_reports(server, expected)


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
    agent.begin(*({**server.entry(f"c{number}", config), **row[0]} for number, row in enumerate(MODES)))
    for number, (_, code, stdout, changes) in enumerate(MODES):
        values = server.result(f"c{number}")
        assert (values["deploy_status_code"], len(values.get("deploy_changes", ()))) == (code, changes), values
        assert values["deploy_stdout"].startswith(stdout)
    assert not motd.exists()
    last = agent.run({**server.entry("last", config, group="file"), "mode": "apply"})
    assert last["deploy_changed"] is True
    assert motd.read_text() == "Hello\n"


def test_a_timeout_ends_the_whole_process_group(server, agent):
    script = """
    (trap '' TERM; echo child; while :; do sleep 0.1; done) &
    (setsid sleep 1000 & echo $! >$WORK/daemon)
    sleep 1000"""
    values = agent.run(server.entry("c1", script, deploy_timeout="0.5"))
    assert values["deploy_status_code"] == 124
    assert values["deploy_status_reason"] == "Timed out after 0.5 s"
    assert values["deploy_stdout"] == "child\n"
    server.until(lambda: set(agent.living()) == {agent.process.pid, int(agent.lines("daemon")[0])})
