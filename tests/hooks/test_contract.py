"""Every built-in hook keeps heat-agents' contract: inputs, outputs and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hooks.conftest import Hook
from stoker_agent.programs import list_builtin

pytestmark = pytest.mark.slow

#: A stand-in for a tool: records its arguments and the variables that the test asks for, prints, and ends with $CODE.
_RECORDER = """#!/bin/sh
printf '%s\\n' "$@" > "$RECORD/argv"
env > "$RECORD/env"
echo "out of the tool"; echo "error of the tool" >&2
if [ -n "$heat_outputs_path" ]; then printf 'from the tool' > "$heat_outputs_path.answer"; fi
exit "${CODE:-0}"
"""


@dataclass(frozen=True)
class Case:
    """A hook with the stand-in of its tool."""

    group: str
    config: Any
    tool: str
    variable: str | None = None
    #: Exit codes of the tool that become 0.
    good: tuple[int, ...] = (0,)
    passes_outputs: bool = True
    check: Callable[[Hook, dict[str, Any], list[str], dict[str, str]], None] = lambda *_: None


def _variables(hook: Hook, entry: dict[str, Any], argv: list[str], environment: dict[str, str]) -> None:
    assert environment["who"] == "world"
    assert json.loads(environment["many"]) == {"a": [1]}


def _facts(hook: Hook, entry: dict[str, Any], argv: list[str], environment: dict[str, str]) -> None:
    assert argv[:2] == ["apply", "--color"]
    assert environment["FACTER_who"] == "world"
    assert json.loads(environment["FACTER_many"]) == {"a": [1]}
    assert environment["FACTER_heat_outputs_path"].endswith(entry["id"]) or environment[
        "FACTER_heat_outputs_path"
    ].endswith("out")


def _extra_vars(hook: Hook, entry: dict[str, Any], argv: list[str], environment: dict[str, str]) -> None:
    assert argv[:2] == ["-i", "localhost,"]
    assert "--extra-vars" in argv
    assert not Path(argv[argv.index("--extra-vars") + 1][1:]).exists(), "the variables may contain secrets"


CASES = [
    Case("ansible", "- hosts: all\n", "ansible-playbook", "HEAT_ANSIBLE_CMD", passes_outputs=False, check=_extra_vars),
    Case("puppet", "notify { 'x': }", "puppet", "HEAT_PUPPET_CMD", good=(0, 2), passes_outputs=False, check=_facts),
    Case("chef", "[]", "chef-client"),
    Case("cfn-init", {"config": {}}, "cfn-init", "HEAT_CFN_INIT_CMD", check=_variables),
    Case("apply-config", None, "os-apply-config", "HEAT_APPLY_CONFIG_CMD", passes_outputs=False),
]


@pytest.mark.parametrize(
    ("case", "hook"),
    [(case, case.group) for case in CASES],
    indirect=["hook"],
    ids=lambda case: getattr(case, "group", ""),
)
def test_a_tool_receives_the_inputs_and_its_results_are_reported(case, hook, tmp_path):
    record = tmp_path / "record"
    record.mkdir()
    tool = hook.tool(case.tool, _RECORDER)
    hook.environment.update(RECORD=str(record), HEAT_CFN_INIT_LAST_METADATA_DIR=str(tmp_path / "cfn"))
    for code in (0, 2, 3):
        if case.variable and code == 3:
            hook.environment[case.variable] = str(tool)
        hook.environment["CODE"] = str(code)
        entry = hook.entry(case.config, outputs=["answer", "none"], who="world", many={"a": [1]})
        outcome = hook.run(entry)
        assert outcome.code == (0 if code in case.good else code)
        assert "out of the tool\n" in outcome.stdout
        assert "error of the tool\n" in outcome.stderr
        assert outcome.report.get("answer") == ("from the tool" if case.passes_outputs else None)
        assert "none" not in outcome.report
        argv = (record / "argv").read_text().splitlines()
        environment = dict(line.split("=", 1) for line in (record / "env").read_text().splitlines() if "=" in line)
        case.check(hook, entry, argv, environment)


@pytest.mark.parametrize("hook", sorted(set(list_builtin()) - {"script", "reboot"}), indirect=True)
def test_a_tool_or_setting_that_is_missing_is_a_failure_with_its_reason(hook, tmp_path):
    hook.environment.update(PATH=str(tmp_path), HEAT_CFN_INIT_LAST_METADATA_DIR=str(tmp_path / "cfn"))
    hook.environment["HEAT_PUPPET_HIERA_DATADIR"] = str(tmp_path / "hiera")
    config = {
        "chef": "[]",
        "ansible": "- {}",
        "python": "x = 1",
        "kubelet": {"containers": [{"name": "a", "image": "b"}]},
    }
    outcome = hook.run(
        hook.entry(
            config.get(
                hook.group, 5 if hook.group in ("json-file", "hiera") else {"a": {}} if "docker" in hook.group else ""
            )
        ),
    )
    assert outcome.code != 0
    assert outcome.report.get("deploy_status_reason") or outcome.stderr


@pytest.mark.parametrize("hook", sorted(set(list_builtin()) - {"script"}), indirect=True)
def test_every_hook_says_what_it_is_for(hook):
    module = __import__(f"stoker_agent.hooks.{hook.group.replace('-', '_')}", fromlist=["x"])
    assert f"``{hook.group}``" in module.__doc__
    assert callable(module.apply)
    assert module.apply.__doc__
