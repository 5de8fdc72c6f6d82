"""The environment of a run: a fixed set of variables, what the administrator and the config add, and nothing else."""

from __future__ import annotations

import pytest

from stoker_agent.environment import read_file

pytestmark = pytest.mark.slow

SHOW = "env -0 >$WORK/env"
#: Variables that /bin/sh adds.
SHELL_OWN = {"PWD", "OLDPWD", "SHLVL", "_"}


def variables(agent, name="env"):
    return dict(part.split("=", 1) for part in agent.work.joinpath(name).read_text().split("\0") if part)


def test_a_run_gets_a_fixed_set_of_variables_and_none_of_the_agents_own(server, agent):
    agent.environment |= {
        **{"AWS_SECRET_ACCESS_KEY": "s3cret", "LD_LIBRARY_PATH": "/nowhere", "OS_PASSWORD": "s3cret"},
        **{"HTTPS_PROXY": "http://proxy:3128", "no_proxy": "localhost"},
        **{"HEAT_ANSIBLE_CMD": "/opt/ansible", "TZ": "Europe/Vienna"},
    }
    agent.begin(server.entry("c1", SHOW, who="world"))
    assert server.result("c1")["deploy_status_code"] == 0
    got = variables(agent)
    added = {"TEST_FOLDER", "WORK"}  # from the agent's file
    run = {"STOKER_RUN", "STOKER_RUN_DIR", "STOKER_PROGRESS", "heat_outputs_path", "HEAT_SCRIPT_WORKING", "who"}
    passed = {"HTTPS_PROXY", "no_proxy", "HEAT_ANSIBLE_CMD", "TZ"}
    fixed = {"LANG", "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM"}
    optional = {"LC_ALL", "TMPDIR"}  # of whoever runs the test
    assert set(got) - SHELL_OWN - optional == added | run | passed | fixed
    assert "s3cret" not in "\n".join(got.values())
    assert got["HTTPS_PROXY"] == "http://proxy:3128"


def test_inputs_take_precedence_over_the_option_over_the_file_of_the_agent_also_for_on_cancel(server, agent):
    agent.run_variables += ["A=file", "B=file", "C=file", "STOKER_RUN=file"]
    environment = {"A": "option", "B": "option", "NUMBER": 3, "STOKER_RUN": "option"}
    options = {"environment": environment, "on_cancel": f"#!/bin/sh\n{SHOW}\n"}
    agent.begin(server.entry("c1", f"{SHOW}.run; touch $WORK/begun; sleep 1000", options=options, A="input"))
    server.until(agent.work.joinpath("begun").exists)
    server.change(cancel=True)
    server.result("c1")
    for name in ("env.run", "env"):
        got = variables(agent, name)
        assert [got[name] for name in ("A", "B", "C", "NUMBER", "STOKER_RUN")] == ["input", "option", "file", "3", "c1"]


def test_the_file_of_variables_ignores_what_is_no_variable(tmp_path):
    path = tmp_path / "environment"
    path.write_text("# a comment\n\nA=1\n B = no name\nC='a b'\nD=\"x=y\"\nnothing\nE=\nexport F=1\n")
    assert read_file(path) == {"A": "1", "C": "a b", "D": "x=y", "E": ""}
    assert read_file(tmp_path / "missing") == {}
